//! The tools that one front door offers, of those that a vault has. The vault may be open in another process: then only the
//! names of its tools are known here, which is enough, since every process knows every tool.

use crate::registry::{RegistryOptions, Reply, every_tool_info, unknown_tool};
use crate::tool::ToolInfo;

/// What a client is shown and may call.
#[derive(Debug, Clone)]
pub struct Offer {
    tools: Vec<ToolInfo>,
}

impl Offer {
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
        let is_offered = self.tools.iter().any(|tool| tool.name == name);
        (!is_offered).then(|| unknown_tool(name, self.tools()))
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
        let message = "Unknown tool: create_node; did you mean get_node?".to_owned();
        assert_eq!(refusal, Reply::Protocol { code: -32602, message });
    }
}
