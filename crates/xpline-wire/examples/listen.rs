//! Runs a program under the tracer and prints what it says: `listen QEMU PLUGIN FOLDER PROGRAM [ARGUMENTS]`.

use std::env;
use std::error::Error;
use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

use xpline_wire::{Decoder, Frame, Session, Tracked, WireError};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [qemu, plugin, folder, program, rest @ ..] = &arguments[..] else {
        return Err("usage: listen QEMU PLUGIN FOLDER PROGRAM [ARGUMENTS]".into());
    };
    let place = env::temp_dir().join(format!("listen-{}", std::process::id()));
    fs::create_dir(&place)?;
    let session = Session {
        socket: place.join("socket"),
        qemu: qemu.into(),
        plugin: plugin.into(),
        tracked: Tracked::Files(vec![fs::canonicalize(folder)?]),
    };
    let file = place.join("session");
    session.write(&file)?;
    let listener = UnixListener::bind(&session.socket)?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || print(stream).unwrap_or_else(|error| eprintln!("{error}")));
        }
    });
    let status = session
        .command(&file, Path::new(program), program)
        .args(rest)
        .status()?;
    println!("{status}");
    fs::remove_dir_all(place)?;
    Ok(())
}

fn print(stream: UnixStream) -> Result<(), WireError> {
    let mut decoder = Decoder::new(stream)?;
    while let Some(frame) = decoder.next_frame()? {
        match frame {
            Frame::Ops(ops) => {
                for op in &ops.ops {
                    println!("{}: {op:x?}", ops.thread);
                }
            }
            other => println!("{other:?}"),
        }
    }
    Ok(())
}
