//! What iudex and its supervisors say to each other: frames of a length and JSON.
//!
//! Never: a message that the command could have written. Each carries a word that only the two ends know; the command
//! may get at the socket (of bubblewrap's first process, say), and must not be able to say that it passed.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::guard::Report;
use crate::landlock::Rules;

/// A frame above this is a fault and not a message.
const LIMIT: usize = 64 << 20;

/// A program with everything it gets; its standard input is closed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Program {
    /// The program first, as an absolute path.
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: PathBuf,
}

/// What a supervisor shall do; the first frame that it gets.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) program: Program,
    pub(crate) launch: Launch,
    /// What the sandbox cannot protect and the supervisor puts back in the end.
    pub(crate) guarded: Vec<PathBuf>,
    /// Where things go that give way to it.
    pub(crate) displaced: PathBuf,
    /// A directory that the command alone uses and that goes with it.
    pub(crate) scratch: Option<PathBuf>,
    /// The limit of descriptors for the program (the soft one); the supervisor may need more.
    pub(crate) descriptors: Option<u64>,
    pub(crate) word: Word,
}

/// How the program is held.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Launch {
    /// Start it and own it.
    Own,
    /// The same inside bubblewrap.
    Inside,
    /// Start it and own it; it leads to another supervisor, which gets this request on its standard input.
    Through(Box<Request>),
    /// Confine this process and become the program.
    Confined(Rules),
}

/// How a program ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
}

/// What the two ends of a socket know and nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Word([u8; 16]);

impl Word {
    pub(crate) fn new() -> io::Result<Self> {
        let mut bytes = [0; 16];
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// As a name that nobody else has.
    pub(crate) fn name(&self) -> String {
        crate::capture::hexadecimal(&self.0)
    }
}

/// What a supervisor is told while the command runs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Interrupt it as Ctrl-C does; it may say where it was.
    Interrupt,
}

/// What a supervisor says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The command runs from here on.
    Started,
    /// It could not be started: the machine's fault.
    Failed(String),
    /// What the guard found.
    Guarded(Report),
    /// It ended; of what it left behind `survivors` could not be killed.
    Ended { exit: Exit, left_behind: u32, survivors: u32 },
    /// What held it ended in this way and did not say how the command did.
    Vanished(Exit),
}

/// The bytes of a frame.
pub(crate) fn frame(content: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(content)?;
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(json);
    Ok(bytes)
}

pub(crate) fn send(stream: &mut impl Write, content: &impl Serialize) -> io::Result<()> {
    stream.write_all(&frame(content)?)
}

/// Says something under the word of the request that it answers.
pub(crate) fn say(stream: &mut impl Write, word: &Word, message: &Message) -> io::Result<()> {
    send(stream, &(word, message))
}

/// Hears what was said under the word.
pub(crate) fn hear<T: DeserializeOwned>(stream: &mut impl Read, word: &Word) -> io::Result<T> {
    checked(receive(stream)?, word)
}

fn checked<T>((said, message): (Word, T), word: &Word) -> io::Result<T> {
    if said == *word { Ok(message) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

pub(crate) fn receive<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LIMIT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut json = vec![0; length];
    stream.read_exact(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}

/// Takes the first message out of what has been read so far, when it is there wholly.
pub(crate) fn take_message(received: &mut Vec<u8>, word: &Word) -> io::Result<Option<Message>> {
    let Some(length) = received.first_chunk::<4>() else { return Ok(None) };
    let end = 4 + u32::from_le_bytes(*length) as usize;
    if end > LIMIT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    if received.len() < end {
        return Ok(None);
    }
    let message = checked(serde_json::from_slice(&received[4..end])?, word)?;
    received.drain(..end);
    Ok(Some(message))
}
