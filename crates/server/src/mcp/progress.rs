//! Progress notifications of a long call, for clients that asked for them: once a second, with what it waits for.

use std::time::Duration;

use rmcp::model::ProgressNotificationParam;

use super::connection::McpContext;
use crate::service::{IndexProgress, Service};

const EVERY: Duration = Duration::from_secs(1);

/// Notifies the client for as long as it is polled; never ready.
pub(super) async fn tell(context: &McpContext, service: &Service) {
    let Some(token) = context.meta.get_progress_token() else { return std::future::pending().await };
    for seconds in 1u32.. {
        tokio::time::sleep(EVERY).await;
        let message = match service.progress().await {
            IndexProgress { files, is_over: false } => format!("the vault is being indexed: {files} files so far"),
            _ => format!("working for {seconds} s"),
        };
        let progress = ProgressNotificationParam::new(token.clone(), f64::from(seconds)).with_message(message);
        // A disconnected client is noticed when its response cannot be sent.
        drop(context.peer.notify_progress(progress).await);
    }
}
