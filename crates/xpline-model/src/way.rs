//! The way of a request through the machine, for whoever wants to see it.

use serde::{Serialize, Serializer};

use crate::program::Program;
use crate::time::Time;

/// What a request passes through, or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// The way between a core and the memory controllers.
    Mesh,
    /// The link between two sockets, with its directory.
    SocketLink,
    /// The write-combining buffer of an ntstore, until it is closed.
    CombiningBuffer,
    /// Room in a write pending queue for the dirty lines that gave way to this one.
    Evicted,
    /// Room in a write pending queue for a write of this core.
    Room,
    /// A DIMM, by the kind of its memory and its number, with the write pending queue in front of it.
    Dimm(&'static str, u16),
    /// The lines before it in the write pending queue.
    Order,
    /// The data bus of a DRAM channel.
    Bus,
    /// A bank of DRAM, and its row.
    Row,
    /// A column of an open row, and its data on the bus.
    Column,
    /// A miss of the near memory, in the memory controller.
    NearMiss,
    /// Room among the lines that go back from near memory to Optane.
    Victims,
    /// The DDR-T link towards an Optane DIMM.
    LinkIn,
    /// A page that wear levelling moves.
    PageMove,
    /// A line of the XPBuffer to be emptied.
    Slot,
    /// A look-up in the address indirection table outside its cache.
    Translation,
    /// A turn at the media's port.
    Port,
    /// A bank of the media.
    Bank,
    /// The media reading.
    Media,
    /// A line of the XPBuffer that is on its way already.
    Line,
    /// The DDR-T link back.
    LinkOut,
    /// A page of flash, or room for it.
    Flash,
    /// The DIMM's controller, with the data in the XPBuffer.
    Buffer,
}

impl Part {
    /// Whether it lies in a DIMM, or in the queue in front of it.
    pub fn is_in_dimm(self) -> bool {
        let outside = [
            Self::Mesh,
            Self::SocketLink,
            Self::CombiningBuffer,
            Self::Evicted,
            Self::Room,
        ];
        !outside.contains(&self) && !matches!(self, Self::Dimm(..))
    }

    /// What a timeline calls it.
    pub fn name(self) -> String {
        match self {
            Self::Mesh => "mesh",
            Self::SocketLink => "socket link",
            Self::CombiningBuffer => "write-combining buffer",
            Self::Evicted => "wait: room for evicted lines",
            Self::Room => "wait: room in write pending queue",
            Self::Dimm(kind, number) => return format!("{kind} DIMM {number}"),
            Self::Order => "wait: earlier writes",
            Self::Bus => "wait: data bus",
            Self::Row => "bank and row",
            Self::Column => "column and data",
            Self::NearMiss => "near memory miss",
            Self::Victims => "wait: lines going back to Optane",
            Self::LinkIn => "wait: DDR-T link in",
            Self::PageMove => "wait: wear levelling moves the page",
            Self::Slot => "wait: XPBuffer line to be emptied",
            Self::Translation => "AIT miss",
            Self::Port => "wait: media port",
            Self::Bank => "wait: media bank",
            Self::Media => "media read",
            Self::Line => "wait: XPBuffer line on its way",
            Self::LinkOut => "wait: DDR-T link out",
            Self::Flash => "wait: page of flash",
            Self::Buffer => "XPBuffer and controller",
        }
        .into()
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.name())
    }
}

/// Who follows requests. What is not followed costs nothing: every step is compiled for each follower, or left out.
pub trait Follow {
    const ON: bool;

    /// A request was at a part, or waited for it, between two moments.
    fn span(&mut self, part: Part, from: Time, until: Time);

    /// The same, if there is anything to see.
    #[inline(always)]
    fn passes(&mut self, part: Part, from: Time, until: Time) {
        if Self::ON && until > from {
            self.span(part, from, until);
        }
    }
}

/// Nobody follows.
pub struct Nobody;

impl Follow for Nobody {
    const ON: bool = false;

    fn span(&mut self, _: Part, _: Time, _: Time) {}
}

/// A program follows its own requests, if it wants to.
pub struct Follower<'a, P>(pub &'a mut P);

impl<P: Program> Follow for Follower<'_, P> {
    const ON: bool = P::TRACED;

    fn span(&mut self, part: Part, from: Time, until: Time) {
        self.0.passed(part, from, until);
    }
}
