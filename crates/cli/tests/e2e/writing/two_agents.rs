//! Two agents that edit different sections of one note at the same moment: each edit takes effect once, or its agent gets an error
//! why it did not and succeeds after reading again. Random; the text is held against a model.

use quipu_testkit::generate::Random;
use serde_json::{Value, json};

use crate::client::Client;

const ROUNDS: u64 = 25;
const SECTIONS: usize = 4;

/// The lines of each section.
struct Model(Vec<Vec<String>>);

impl Model {
    fn text(&self) -> String {
        let section = |(number, lines): (usize, &Vec<String>)| format!("\n## Part {number}\n{}\n", lines.join("\n"));
        format!("# Shared\n{}", self.0.iter().enumerate().map(section).collect::<String>())
    }

    fn apply(&mut self, edit: &Edit) {
        let lines = &mut self.0[edit.section];
        match &edit.kind {
            Kind::Add(line) => lines.push(line.clone()),
            Kind::Replace(line) => *lines = vec![line.clone()],
            Kind::Tick => lines.iter_mut().for_each(|line| *line = line.replacen("- [ ]", "- [x]", 1)),
        }
    }
}

struct Edit {
    section: usize,
    kind: Kind,
}

enum Kind {
    Add(String),
    Replace(String),
    /// The only task of the section.
    Tick,
}

impl Edit {
    fn random(random: &mut Random, section: usize, name: &str, model: &Model) -> Self {
        let open = model.0[section].iter().filter(|line| line.starts_with("- [ ]")).count();
        let kind = match random.below(3) {
            0 => Kind::Replace(format!("- [ ] task of {name}")),
            1 if open == 1 => Kind::Tick,
            _ => Kind::Add(format!("line of {name}")),
        };
        Self { section, kind }
    }

    fn arguments(&self, model: &Model) -> Value {
        let heading = format!("Part {}", self.section);
        let edit = match &self.kind {
            Kind::Add(line) => json!({"op": "insert", "heading": heading, "position": "end", "text": line}),
            Kind::Replace(line) => json!({"op": "replace_section", "heading": heading, "text": line}),
            Kind::Tick => {
                let task = model.0[self.section].iter().find(|line| line.starts_with("- [ ]")).unwrap();
                json!({"op": "set_task", "text": task, "done": true})
            }
        };
        json!({"name": "edit_node", "arguments": {"id": "shared.md", "edits": [edit]}})
    }
}

/// Whether an edit took effect; if not, the error asked its agent to read the note again.
fn took_effect(reply: &Value) -> bool {
    let result = &reply["result"];
    if result["isError"] != true {
        return true;
    }
    let said = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{reply}"));
    let error: Value = serde_json::from_str(said).unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert_eq!(error["error"]["code"], "PROVIDER_ERROR", "{said}");
    assert!(message.contains("shared.md") && message.contains("changed elsewhere"), "{message}");
    assert!(message.contains("ead it again"), "it says what to do: {message}");
    false
}

#[test]
fn concurrent_edits_of_different_sections_take_effect_or_fail_with_a_reason() {
    let mut random = Random(0x5ec7);
    let mut model = Model((0..SECTIONS).map(|number| vec![format!("first {number}")]).collect());
    let mut one = Client::open(&format!("//- shared.md\n{}", model.text()));
    let mut other = one.join(&[]);
    let mut told = 0;
    for round in 0..ROUNDS {
        let section = random.below(SECTIONS);
        let next = (section + 1 + random.below(SECTIONS - 1)) % SECTIONS;
        let first = Edit::random(&mut random, section, &format!("one in {round}"), &model);
        let second = Edit::random(&mut random, next, &format!("other in {round}"), &model);
        for client in [&mut one, &mut other] {
            client.answer("get_node", json!({"id": "shared.md"}));
        }
        // Both are sent before either is answered.
        one.send("tools/call", first.arguments(&model));
        other.send("tools/call", second.arguments(&model));
        for (client, edit) in [(&mut one, &first), (&mut other, &second)] {
            let mut reply = client.receive();
            while !took_effect(&reply) {
                told += 1;
                client.answer("get_node", json!({"id": "shared.md"}));
                reply = client.request("tools/call", edit.arguments(&model));
            }
        }
        model.apply(&first);
        model.apply(&second);
        assert_eq!(one.read("shared.md"), model.text(), "round {round}");
    }
    assert!(told > 0, "the two never met: this tested nothing");
}
