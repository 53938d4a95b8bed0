//! The tools that one front door offers, of those that a vault has. The vault may be open in another process: then only the
//! names of its tools are known here, which is enough, since every process knows every tool.

use crate::registry::{INVALID_PARAMS, Registry, RegistryOptions, Reply, every_tool_info, unknown_tool};
use crate::tool::ToolInfo;

/// What a client is shown and may call.
#[derive(Debug, Clone)]
pub struct Offer {
    tools: Vec<ToolInfo>,
}

impl Offer {
    /// Of a registry's tools those that the options admit.
    pub fn of(registry: &Registry, options: RegistryOptions) -> Self {
        let admits = options.into_rule();
        Self { tools: registry.tools().filter(|tool| admits(tool)).cloned().collect() }
    }

    /// Of the tools with these names, those that the options admit, always in the same order.
    pub fn among<'a>(names: impl IntoIterator<Item = &'a str>, options: RegistryOptions) -> Self {
        let (names, admits): (Vec<&str>, _) = (names.into_iter().collect(), options.into_rule());
        let tools = every_tool_info().filter(|tool| names.contains(&tool.name) && admits(tool));
        Self { tools: tools.collect() }
    }

    /// What is offered.
    pub fn tools(&self) -> impl Iterator<Item = &ToolInfo> {
        self.tools.iter()
    }

    /// The answer to a call of a tool that is not offered; `None` for one that is.
    pub fn refusal(&self, name: &str) -> Option<Reply> {
        if self.tools.iter().any(|tool| tool.name == name) {
            return None;
        }
        let Some(tool) = every_tool_info().find(|tool| tool.name == name) else {
            return Some(unknown_tool(name, self.tools()));
        };
        let toolset = tool.toolset.name();
        let message = format!(
            "{name} is not offered here: this server was started for reading only, or without the toolset {toolset} or \
             what it needs"
        );
        Some(Reply::Protocol { code: INVALID_PARAMS, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Toolset;

    #[test]
    fn what_is_not_offered_cannot_be_called() {
        let options = RegistryOptions { toolsets: vec![Toolset::Notes], read_only: true };
        let offer = Offer::among(["create_node", "get_node", "list_documents", "of a newer version"], options);
        assert_eq!(offer.tools().map(|tool| tool.name).collect::<Vec<_>>(), ["get_node"]);
        assert_eq!(offer.refusal("get_node"), None);
        let refusal = offer.refusal("create_node").unwrap();
        let Reply::Protocol { code, message } = refusal else { panic!("{refusal:?}") };
        assert_eq!(code, -32602);
        assert!(message.starts_with("create_node is not offered here: "), "{message}");
        let unknown = Reply::Protocol { code: -32602, message: "Unknown tool: get_nod; did you mean get_node?".into() };
        assert_eq!(offer.refusal("get_nod"), Some(unknown));
    }
}
