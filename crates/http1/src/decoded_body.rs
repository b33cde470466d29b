//! An encoded body: decoded as it arrives, one bounded piece at a time. The encoded bytes are limited here; the reader of the body limits
//! and counts the decoded bytes, as with every body.

use limits::DECODER_BYTES;

use crate::body_budget::BodyBudget;
use crate::decoder::{Broken, Coding, DecodeProgress, Decoder};
use crate::error::{RequestError, RequestErrorKind};

use crate::transport::Transport;

/// The cost of a step in addition to its bytes: many small members or frames are work too.
const STEP_BYTES: usize = 1024;

/// The decoding of one body.
pub(crate) struct DecodedBody<B> {
    coding: Coding,
    /// Encoded.
    bytes_max: usize,
    /// Created with the body's first byte: a client that only announces a body uses no memory.
    decoder: Option<Decoder>,
    /// For the decoder itself; the reader counts the decoded bytes.
    budget: B,
    /// The last piece that was received, and how much of it is decoded.
    input: Vec<u8>,
    taken: usize,
    encoded: usize,
}

impl<B: BodyBudget> DecodedBody<B> {
    pub(crate) fn new(budget: B, coding: Coding, bytes_max: usize) -> Self {
        Self { coding, bytes_max, decoder: None, budget, input: Vec::new(), taken: 0, encoded: 0 }
    }

    /// Whether there is something to decode.
    pub(crate) fn has_work(&self) -> bool {
        self.taken < self.input.len()
    }

    /// Takes the next piece that was received; the one before it is decoded.
    ///
    /// # Errors
    /// It is one too many.
    pub(crate) fn add(&mut self, piece: &[u8]) -> Result<(), B::Error> {
        self.encoded += piece.len();
        if self.encoded > self.bytes_max {
            let detail = format!("the compressed body has more than {} bytes: send smaller requests", self.bytes_max);
            return Err(RequestError::boxed(RequestErrorKind::TooLarge, detail).into());
        }
        if self.decoder.is_none() {
            self.budget.admit(DECODER_BYTES)?;
            self.decoder = Some(Decoder::new(self.coding).map_err(|error| broken(self.coding, error))?);
        }
        self.input.clear();
        self.input.extend_from_slice(piece);
        self.taken = 0;
        Ok(())
    }

    /// Decodes a bounded piece and gives it to `take`, if there is one. Returns the cost as a number of bytes.
    ///
    /// # Errors
    /// The received bytes can't be decoded.
    pub(crate) fn step<T>(
        &mut self,
        transport: &Transport,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Result<(usize, Option<T>), Box<RequestError>> {
        let Some(decoder) = &mut self.decoder else { return Ok((0, None)) };
        let mut output = transport.decoded();
        let step = decoder.step(&self.input[self.taken..], &mut output);
        let DecodeProgress { read, written } = step.map_err(|error| broken(self.coding, error))?;
        self.taken += read;
        Ok((STEP_BYTES + written, (written > 0).then(|| take(&output[..written]))))
    }

    /// Checks the end of the body.
    ///
    /// # Errors
    /// The encoded data is incomplete.
    pub(crate) fn finish(&self) -> Result<(), Box<RequestError>> {
        match &self.decoder {
            Some(decoder) if decoder.is_complete() => Ok(()),
            _ => Err(broken(self.coding, Broken("the data ends too early: send all of it".into()))),
        }
    }
}

fn broken(coding: Coding, Broken(why): Broken) -> Box<RequestError> {
    let coding = match coding {
        Coding::Gzip => "gzip",
        Coding::Deflate => "deflate",
        Coding::Zstd => "zstd",
    };
    RequestError::boxed(RequestErrorKind::Encoding, format!("invalid {coding} body: {why}"))
}
