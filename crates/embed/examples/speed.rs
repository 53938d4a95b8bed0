//! Prints how fast the builtin model is: texts a CPU-second at 64 and 256 tokens.
use std::time::Instant;
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}
fn main() {
    let start = Instant::now();
    let model = quipu_embed::builtin::BuiltinModel::load();
    println!("load {:?}", start.elapsed());
    for words in [13, 62, 250] {
        let text = "the quick brown fox jumps over lazy dogs and ".repeat(40).split(' ').take(words).collect::<Vec<_>>().join(" ");
        let tokens = model.count_tokens(&text);
        model.embed(&text);
        let start = Instant::now();
        let mut n = 0;
        let cpu = cpu_seconds();
        while start.elapsed().as_millis() < 2000 { model.embed(&text); n += 1; }
        println!("{tokens} tokens: {:.1} texts/CPU-s", f64::from(n) / (cpu_seconds() - cpu));
    }
    for arg in std::env::args().skip(1) {
        let v = model.embed(&arg); println!("{:?}", &v[..6]);
    }
}
