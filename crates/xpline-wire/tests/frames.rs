//! Frames come back as they went out, whatever they hold; broken streams are told.

use proptest::collection::vec;
use proptest::prelude::*;
use xpline_wire::{
    Call, CallKind, Decoder, EndReason, File, Frame, Hello, Mapping, Op, OpKind, Ops, Stack, Start, WireError, encode,
    encode_start,
};

fn ops() -> impl Strategy<Value = Op> {
    (
        0..OpKind::ALL.len(),
        any::<bool>(),
        -1i64 << 47..1 << 47,
        any::<u16>(),
        any::<[u32; 2]>(),
        0..1u64 << 48,
    )
        .prop_map(|(kind, string, address, size, [instructions, stack], pc)| Op {
            kind: OpKind::ALL[kind],
            string,
            address: address as u64,
            size,
            instructions,
            pc,
            stack,
        })
}

fn frames() -> impl Strategy<Value = Frame> {
    let text = || vec(any::<u8>(), 0..40);
    prop_oneof![
        (
            any::<[u32; 2]>(),
            any::<u64>(),
            any::<bool>(),
            text(),
            vec(text(), 0..4)
        )
            .prop_map(|([process, parent], time, fork, executable, arguments)| {
                let start = if fork { Start::Fork } else { Start::Exec };
                Frame::Hello(Hello {
                    process,
                    parent,
                    start,
                    time,
                    executable,
                    arguments,
                })
            }),
        (any::<u32>(), any::<bool>(), any::<[u64; 2]>(), text()).prop_map(|(id, tracked, [device, inode], path)| {
            Frame::File(File {
                id,
                tracked,
                device,
                inode,
                path,
            })
        }),
        (
            any::<[u64; 4]>(),
            proptest::option::of(any::<u32>()),
            any::<[bool; 3]>()
        )
            .prop_map(|([epoch, address, size, offset], file, [shared, executable, traced])| {
                Frame::Map(Mapping {
                    epoch,
                    address,
                    size,
                    file,
                    offset,
                    shared,
                    executable,
                    traced,
                })
            }),
        any::<[u64; 3]>().prop_map(|[epoch, address, size]| Frame::Unmap { epoch, address, size }),
        (any::<[u32; 2]>(), any::<[u64; 2]>())
            .prop_map(|([id, caller], [pc, epoch])| { Frame::Stack(Stack { id, caller, pc, epoch }) }),
        (any::<u32>(), any::<u64>()).prop_map(|(thread, time)| Frame::ThreadStart { thread, time }),
        (any::<u32>(), any::<[u64; 2]>()).prop_map(|(thread, [time, instructions])| Frame::ThreadEnd {
            thread,
            time,
            instructions
        }),
        (any::<u32>(), any::<[u64; 3]>(), vec(ops(), 0..50)).prop_map(|(thread, [epoch, begin, end], ops)| Frame::Ops(
            Ops {
                thread,
                epoch,
                begin,
                end,
                ops
            }
        )),
        (any::<[u32; 3]>(), 0..CallKind::ALL.len(), any::<[u64; 8]>()).prop_map(
            |([thread, file, stack], kind, [pc, instructions, epoch, begin, end, offset, size, address])| {
                let kind = CallKind::ALL[kind];
                Frame::Call(Call {
                    thread,
                    kind,
                    pc,
                    instructions,
                    epoch,
                    begin,
                    end,
                    file,
                    offset,
                    size,
                    address,
                    stack,
                })
            }
        ),
    ]
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_start(&mut bytes);
    frames.iter().for_each(|frame| encode(frame, &mut bytes));
    bytes
}

fn decoded(bytes: &[u8]) -> Result<(Vec<Frame>, bool), WireError> {
    let mut decoder = Decoder::new(bytes)?;
    let mut frames = Vec::new();
    while let Some(frame) = decoder.next_frame()? {
        frames.push(frame);
    }
    Ok((frames, decoder.complete()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn frames_come_back(mut frames in vec(frames(), 0..12)) {
        frames.push(Frame::End { time: 9, reason: EndReason::Exec });
        prop_assert_eq!(decoded(&encoded(&frames)).unwrap(), (frames, true));
    }

    #[test]
    fn a_stream_that_breaks_off_has_the_frames_before(frames in vec(frames(), 1..6), cut in any::<prop::sample::Index>()) {
        let bytes = encoded(&frames);
        let cut = 16 + cut.index(bytes.len() - 16);
        let (found, complete) = decoded(&bytes[..cut]).unwrap();
        prop_assert!(!complete);
        prop_assert_eq!(&found[..], &frames[..found.len()]);
        prop_assert!(encoded(&found).len() <= cut && found.len() < frames.len());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..200), kind in 0u32..12) {
        let mut stream = encoded(&[]);
        stream.extend(kind.to_le_bytes());
        stream.extend((bytes.len() as u32).to_le_bytes());
        stream.extend(bytes);
        if let Ok((frames, _)) = decoded(&stream) {
            prop_assert_eq!(encoded(&frames), stream);
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    let what = |bytes: &[u8]| decoded(bytes).unwrap_err().to_string();
    assert!(what(b"").contains("no stream"));
    assert!(what(b"\x7fELF and then some more").contains("no stream"));
    let mut newer = encoded(&[]);
    newer[8] = 3;
    assert!(what(&newer).contains("version 3") && what(&newer).contains("xpline tracer install"));
    let mut long = encoded(&[]);
    long.extend([7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    assert!(what(&long).contains("byte 16") && what(&long).contains("1048576"));
    let mut unknown = encoded(&[]);
    unknown.extend([99, 0, 0, 0, 0, 0, 0, 0]);
    assert!(what(&unknown).contains("kind 99"));
}
