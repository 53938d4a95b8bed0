//! The log: on stderr, since stdout belongs to answers and to the protocol.

use std::io::IsTerminal;

use anyhow::Context;
use quipu_core::on_one_line;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{FormatFields, debug_fn};

use crate::failure::Failure;

const VARIABLE: &str = "QUIPU_LOG";

/// Starts the log; `QUIPU_LOG` wins over `-v`.
pub(crate) fn start(verbose: u8) -> Result<(), Failure> {
    let filter = match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => EnvFilter::try_new(&text).map_err(|error| {
            Failure::usage(format!("cannot use {VARIABLE}={text}: {error}"))
                .hint(format!("set it to a level such as {VARIABLE}=debug or {VARIABLE}=warn"))
        })?,
        _ => EnvFilter::new(match verbose {
            // The address of a server is logged also by default.
            // rmcp warns of every error response and reports a disconnect as an error; notify warns of every deleted folder;
            // usvg warns of every letter without a glyph, and `quipu picture` says so once.
            0 => "warn,quipu::listening=info,rmcp=off,notify=error,usvg=error",
            1 => "info",
            _ => "debug",
        }),
    };
    // This part of the HTTP client logs every byte that it sends: keys and notes.
    let bytes_sent = "ureq_proto::util=off".parse().context("cannot start the log")?;
    tracing_subscriber::fmt()
        .with_env_filter(filter.add_directive(bytes_sent))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && super::output::wants_colour())
        .with_target(verbose > 1)
        .without_time()
        .fmt_fields(fields())
        .init();
    Ok(())
}

/// The message and the fields of an event, escaped so that they cannot forge another line of the log.
fn fields() -> impl for<'writer> FormatFields<'writer> + 'static {
    debug_fn(|writer, field, value| {
        let text = format!("{value:?}");
        match field.name() {
            "message" => write!(writer, "{}", on_one_line(&text)),
            name => write!(writer, "{name}={}", on_one_line(&text)),
        }
    })
    .delimited(" ")
}
