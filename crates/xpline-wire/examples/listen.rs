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
        callers: true,
    };
    let file = place.join("session");
    session.write(&file)?;
    let listener = UnixListener::bind(&session.socket)?;
    let listening = thread::spawn(move || {
        let streams = listener.incoming().map_while(Result::ok).map(Decoder::new);
        // What begins otherwise is the last connection, which says that no others follow.
        let readers: Vec<_> = streams
            .map_while(Result::ok)
            .map(|decoder| thread::spawn(|| print(decoder)))
            .collect();
        for reader in readers {
            if let Ok(Err(error)) = reader.join() {
                eprintln!("{error}");
            }
        }
    });
    let status = session
        .command(&file, Path::new(program), program)
        .args(rest)
        .status()?;
    drop(UnixStream::connect(&session.socket)?);
    listening.join().map_err(|_| "the listener failed")?;
    println!("{status}");
    fs::remove_dir_all(place)?;
    Ok(())
}

fn print(mut decoder: Decoder<UnixStream>) -> Result<(), WireError> {
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
