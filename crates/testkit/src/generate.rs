//! Generated vaults for benchmarks: the same seed gives the same bytes on every machine.
//!
//! Words follow Zipf's law and links prefer notes that have links already, since an index that is fast on uniform text and
//! even graphs may still be slow on what people write. Every seventh note is Japanese.

#![expect(clippy::disallowed_methods, reason = "writes a vault of its own making")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use std::{fs, io};

const WORDS: usize = 20_000;
const TAGS: usize = 150;
const NOTES_A_FOLDER: usize = 50;

/// Writes `notes` files below `dir`; returns their relative paths, oldest first.
pub fn vault(dir: &Path, notes: usize, seed: u64) -> io::Result<Vec<String>> {
    let words = Vocabulary::get();
    let mut random = Random(seed);
    let names: Vec<Name> = (0..notes).map(|index| Name::new(index, words, &mut random)).collect();
    for folder in names.iter().step_by(NOTES_A_FOLDER) {
        fs::create_dir_all(dir.join(&folder.folder))?;
    }
    let mut linked: Vec<usize> = Vec::with_capacity(notes * 6);
    for (index, name) in names.iter().enumerate() {
        let links = targets(index, notes, &mut linked, &mut random);
        fs::write(dir.join(name.path()), note(index, &names, &links, words, &mut random))?;
    }
    Ok(names.iter().map(Name::path).collect())
}

/// The word at a rank of the Latin vocabulary: 0 is in nearly every note, the last ones in few.
pub fn word(rank: usize) -> String {
    Vocabulary::get().latin[rank].clone()
}

/// The tag at a rank: 0 is the most used.
pub fn tag(rank: usize) -> String {
    // Some are nested, as in real vaults.
    if rank % 4 == 3 { format!("area{}/topic{rank}", rank % 7) } else { format!("topic{rank}") }
}

struct Name {
    folder: String,
    stem: String,
    title: String,
}

impl Name {
    fn new(index: usize, words: &Vocabulary, random: &mut Random) -> Self {
        let count = 1 + random.below(3);
        let title: Vec<String> = (0..count).map(|_| capitalised(words.latin(random))).collect();
        let folder = index / NOTES_A_FOLDER;
        Self {
            folder: format!("area{}/folder{folder}", folder % 20),
            stem: format!("{}-{index}", title.join("-").to_lowercase()),
            title: format!("{} {index}", title.join(" ")),
        }
    }

    fn path(&self) -> String {
        format!("{}/{}.md", self.folder, self.stem)
    }
}

/// About five notes to link to. Half are drawn from the ends of links made before, which is preferential attachment; the
/// others from anywhere, so that links also point forward and paths run both ways.
fn targets(index: usize, notes: usize, linked: &mut Vec<usize>, random: &mut Random) -> Vec<usize> {
    let mut targets = Vec::new();
    for _ in 0..2 + random.below(7) {
        let target = if linked.is_empty() || random.below(2) == 0 {
            random.below(notes)
        } else {
            linked[random.below(linked.len())]
        };
        if target != index {
            linked.push(target);
            targets.push(target);
        }
    }
    targets
}

fn note(index: usize, names: &[Name], links: &[usize], words: &Vocabulary, random: &mut Random) -> String {
    let name = &names[index];
    let mut text = String::with_capacity(2048);
    if random.below(5) > 0 {
        frontmatter(&mut text, name, random);
    }
    let japanese = index % 7 == 6;
    let _ = writeln!(text, "# {}\n", name.title);
    let paragraphs = 3 + random.below(5);
    let mut links = links.iter();
    for paragraph in 0..paragraphs {
        if paragraph > 0 && random.below(2) == 0 {
            let level = if random.below(3) == 0 { "###" } else { "##" };
            let _ = writeln!(text, "{level} {} {}\n", capitalised(words.latin(random)), words.latin(random));
        }
        if japanese {
            words.japanese_paragraph(&mut text, random);
        } else {
            words.paragraph(&mut text, random);
        }
        // The last paragraph takes the remaining links.
        let here = if paragraph + 1 == paragraphs { usize::MAX } else { 1 };
        for target in links.by_ref().take(here) {
            link(&mut text, &names[*target], random);
        }
        if random.below(40) == 0 {
            let _ = write!(text, " [[no such note {}]]", random.below(10_000));
        }
        if random.below(6) == 0 {
            let _ = write!(text, " #{}", tag(random.skewed(TAGS)));
        }
        text.push_str("\n\n");
        if random.below(12) == 0 {
            let _ = writeln!(text, "```rust\nlet {} = \"[[not a link]]\";\n```\n", words.latin(random));
        }
    }
    text
}

fn frontmatter(text: &mut String, name: &Name, random: &mut Random) {
    text.push_str("---\n");
    if random.below(2) == 0 {
        let _ = writeln!(text, "title: {}", name.title);
    }
    let tags: Vec<String> = (0..random.below(4)).map(|_| tag(random.skewed(TAGS))).collect();
    if !tags.is_empty() {
        let _ = writeln!(text, "tags: [{}]", tags.join(", "));
    }
    if random.below(8) == 0 {
        let _ = writeln!(text, "aliases:\n  - {} also", name.title);
    }
    let (month, day) = (1 + random.below(12), 1 + random.below(28));
    let _ = writeln!(text, "created: 2026-{month:02}-{day:02}\n---\n");
}

fn link(text: &mut String, target: &Name, random: &mut Random) {
    let _ = match random.below(10) {
        0 => write!(text, " [{}](/{})", target.title, target.path()),
        1 | 2 => write!(text, " [[{}|{}]]", target.stem, target.title),
        3 => write!(text, " [[{}/{}]]", target.folder, target.stem),
        _ => write!(text, " [[{}]]", target.stem),
    };
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

struct Vocabulary {
    latin: Vec<String>,
    japanese: Vec<String>,
}

impl Vocabulary {
    /// Always the same words, whatever the seed of a vault: a benchmark can ask for them.
    fn get() -> &'static Self {
        static WORDS: OnceLock<Vocabulary> = OnceLock::new();
        WORDS.get_or_init(Self::new)
    }

    fn new() -> Self {
        let mut random = Random(0x5eed);
        let mut latin: Vec<String> =
            "the of and to a in is that for it as was with be by on not he his but at are this have from or had an they"
                .split(' ')
                .map(str::to_owned)
                .collect();
        let mut known: std::collections::HashSet<String> = latin.iter().cloned().collect();
        while latin.len() < WORDS {
            let word = latin_word(&mut random);
            if known.insert(word.clone()) {
                latin.push(word);
            }
        }
        let japanese = (0..WORDS / 4).map(|_| japanese_word(&mut random)).collect();
        Self { latin, japanese }
    }

    fn latin(&self, random: &mut Random) -> &str {
        &self.latin[random.skewed(self.latin.len())]
    }

    fn paragraph(&self, text: &mut String, random: &mut Random) {
        for _ in 0..2 + random.below(3) {
            let length = 8 + random.below(12);
            for place in 0..length {
                match place {
                    0 => text.push_str(&capitalised(self.latin(random))),
                    _ => {
                        text.push(' ');
                        text.push_str(self.latin(random));
                    }
                }
            }
            text.push_str(". ");
        }
    }

    fn japanese_paragraph(&self, text: &mut String, random: &mut Random) {
        for _ in 0..3 + random.below(3) {
            for _ in 0..4 + random.below(5) {
                text.push_str(&self.japanese[random.skewed(self.japanese.len())]);
                text.push_str(["は", "が", "を", "に", "の", "と", "で"][random.below(7)]);
            }
            text.push_str("です。");
        }
    }
}

fn latin_word(random: &mut Random) -> String {
    const ONSETS: [&str; 20] =
        ["b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "pl", "gr", "ch", "sh", "br"];
    const RIMES: [&str; 15] = ["a", "e", "i", "o", "u", "an", "er", "in", "on", "ar", "el", "is", "ent", "ate", "ion"];
    (0..2 + random.below(3))
        .map(|_| [ONSETS[random.below(ONSETS.len())], RIMES[random.below(RIMES.len())]].concat())
        .collect()
}

fn japanese_word(random: &mut Random) -> String {
    let (first, count) = if random.below(4) == 0 { (0x30a2, 70) } else { (0x4e00, 2000) };
    let letter = |random: &mut Random| {
        let offset = u32::try_from(random.below(count)).expect("the count is small");
        char::from_u32(first + offset).expect("inside the katakana and kanji blocks")
    };
    (0..1 + random.below(3)).map(|_| letter(random)).collect()
}

/// SplitMix64: small, and the same everywhere, which libraries do not promise across versions.
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next_u64() % end as u64) as usize
    }

    /// A rank below `end` by Zipf's law with exponent 1: the inverse of its distribution, `(end + 1)^u - 1`.
    fn skewed(&mut self, end: usize) -> usize {
        let uniform = (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let rank = ((end + 1) as f64).powf(uniform) - 1.0;
        (rank as usize).min(end - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(dir: &Path, paths: &[String]) -> Vec<Vec<u8>> {
        paths.iter().map(|path| fs::read(dir.join(path)).unwrap()).collect()
    }

    #[test]
    fn same_seed_gives_the_same_bytes() {
        let dirs = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let vaults: Vec<_> = dirs
            .iter()
            .zip([1, 1, 2])
            .map(|(dir, seed)| {
                let paths = vault(dir.path(), 120, seed).unwrap();
                bytes(dir.path(), &paths)
            })
            .collect();
        assert_eq!(vaults[0], vaults[1]);
        assert_ne!(vaults[0], vaults[2]);
    }

    #[test]
    fn generated_vault_resembles_real_ones() {
        let dir = tempfile::tempdir().unwrap();
        let paths = vault(dir.path(), 700, 7).unwrap();
        let texts: Vec<String> = bytes(dir.path(), &paths).into_iter().map(|b| String::from_utf8(b).unwrap()).collect();

        let words: usize = texts.iter().map(|text| text.split_whitespace().count()).sum();
        assert!((100..300).contains(&(words / texts.len())), "{} words a note", words / texts.len());
        let links: usize = texts.iter().map(|text| text.matches("[[").count() + text.matches("](/").count()).sum();
        assert!((4..7).contains(&(links / texts.len())), "{} links a note", links / texts.len());
        assert_eq!(texts.iter().filter(|text| text.contains("です。")).count(), 100);
        assert!(texts.iter().filter(|text| text.starts_with("---\n")).count() > 500);
        let with_common = texts.iter().filter(|text| text.contains(&format!(" {} ", word(0)))).count();
        let with_rare = texts.iter().filter(|text| text.contains(&format!(" {} ", word(WORDS - 1)))).count();
        assert!(with_common > 500 && with_rare < 10, "{with_common} and {with_rare}");
    }
}
