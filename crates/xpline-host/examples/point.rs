//! Measure points given as JSON on the command line; the first argument is the target, the second the options.

use xpline_host::{Host, HostError, Options};

fn main() -> Result<(), HostError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options: Options = serde_json::from_str(&arguments[1]).expect("options are a JSON object");
    let host = Host::new(&arguments[0], options)?;
    let points = host.read_points(&arguments[2..])?;
    host.run(&points, &Default::default(), |_, row| {
        let mut row = row.clone();
        row.environment = "".into();
        println!("{}", serde_json::to_string(&row).expect("a row is plain data"));
    })?;
    Ok(())
}
