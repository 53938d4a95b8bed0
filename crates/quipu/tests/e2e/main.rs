//! The built program over real pipes, spoken to in raw lines: what a client sees, byte for byte.

mod client;

mod calls;
mod ending;
mod handshake;
mod resources;
mod wire;
