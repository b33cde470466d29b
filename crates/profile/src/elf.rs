//! The functions of an ELF file, and their names: what a profile needs of its symbols, read with bounded memory.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const SYMBOL_BYTES: usize = 24;
/// Sections, and symbols, of a file that is read: several times what the program has.
const SECTIONS_MAX: usize = 1024;
const SYMBOLS_MAX: u64 = 1 << 20;
/// Bytes of a name. Longer ones are cut.
const NAME_BYTES_MAX: usize = 2048;

const SEGMENT_LOADED: u32 = 1;
const SECTION_SYMBOLS: u32 = 2;
const SECTION_EXPORTED_SYMBOLS: u32 = 11;
const SYMBOL_FUNCTION: u8 = 2;
/// A function that is chosen at the start, as those that copy memory.
const SYMBOL_CHOSEN_FUNCTION: u8 = 10;

/// An ELF file that is mapped into the process.
#[derive(Debug)]
pub(crate) struct ElfFile {
    file: File,
    segments: Vec<Segment>,
    /// By address.
    functions: Vec<Function>,
    /// Where the names begin.
    names: u64,
    /// Whether it lists all functions, or only those that it exports.
    pub(crate) has_all_symbols: bool,
}

#[derive(Debug)]
struct Segment {
    offset: u64,
    address: u64,
    bytes: u64,
}

/// A function. Addresses are those in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Function {
    pub(crate) address: u32,
    bytes: u32,
    name: u32,
}

#[derive(Clone, Copy)]
struct Section {
    kind: u32,
    offset: u64,
    bytes: u64,
    link: usize,
}

impl ElfFile {
    /// Reads a file of this machine's kind: 64 bits, least byte first.
    ///
    /// # Errors
    /// It can't be read, or is another kind of file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let header: [u8; HEADER_BYTES] = read_array(&file, 0)?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let segments = (0..usize::from(half(&header, 56))).map(|index| {
            let segment: [u8; SEGMENT_BYTES] = read_array(&file, at(word(&header, 32), index, SEGMENT_BYTES))?;
            let loaded = half_word(&segment, 0) == SEGMENT_LOADED;
            Ok(loaded.then(|| Segment {
                offset: word(&segment, 8),
                address: word(&segment, 16),
                bytes: word(&segment, 32),
            }))
        });
        let segments = segments.filter_map(io::Result::transpose).collect::<io::Result<_>>()?;
        let sections = (0..usize::from(half(&header, 60)).min(SECTIONS_MAX)).map(|index| {
            let section: [u8; SECTION_BYTES] = read_array(&file, at(word(&header, 40), index, SECTION_BYTES))?;
            let (offset, bytes) = (word(&section, 24), word(&section, 32));
            let link = half_word(&section, 40) as usize;
            Ok(Section { kind: half_word(&section, 4), offset, bytes, link })
        });
        let sections = sections.collect::<io::Result<Vec<_>>>()?;
        let of_kind = |kind| sections.iter().find(|section| section.kind == kind);
        let all = of_kind(SECTION_SYMBOLS);
        let symbols = all.or_else(|| of_kind(SECTION_EXPORTED_SYMBOLS));
        let names = symbols.and_then(|symbols| sections.get(symbols.link)).map_or(0, |names| names.offset);
        let functions = symbols.map(|symbols| functions(&mut file, symbols)).transpose()?.unwrap_or_default();
        Ok(Self { file, segments, functions, names, has_all_symbols: all.is_some() })
    }

    /// The address that belongs to an offset in the file.
    pub(crate) fn address_of(&self, offset: u64) -> Option<u64> {
        let segment = self
            .segments
            .iter()
            .find(|segment| offset.checked_sub(segment.offset).is_some_and(|inside| inside < segment.bytes))?;
        Some(offset - segment.offset + segment.address)
    }

    /// The function that has an instruction at this address.
    pub(crate) fn function_at(&self, address: u64) -> Option<Function> {
        let address = u32::try_from(address).ok()?;
        let after = self.functions.partition_point(|function| function.address <= address);
        let function = *self.functions.get(after.checked_sub(1)?)?;
        // Functions in assembler may have no length: they reach to the next.
        let inside = address - function.address;
        (inside < function.bytes || function.bytes == 0).then_some(function)
    }

    /// The best name of a function: several may begin at one address, as `free`, `__libc_free` and `cfree`.
    pub(crate) fn name(&self, function: Function) -> Option<String> {
        let first = self.functions.partition_point(|other| other.address < function.address);
        let same = self.functions[first..].iter().take_while(|other| other.address == function.address);
        let names = same.filter_map(|other| self.text(other.name)).filter(|name| !name.is_empty());
        let name = names.min_by_key(|name| (name.bytes().take_while(|byte| *byte == b'_').count() > 1, name.len()))?;
        Some(format!("{:#}", rustc_demangle::demangle(&name)))
    }

    fn text(&self, offset: u32) -> Option<String> {
        let mut bytes = vec![0; NAME_BYTES_MAX];
        let read = self.file.read_at(&mut bytes, self.names + u64::from(offset)).ok()?;
        bytes.truncate(read);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        bytes.truncate(end);
        String::from_utf8(bytes).ok()
    }

    /// Up to `bytes.len()` bytes at this offset of the file: the number that was read.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> usize {
        self.file.read_at(bytes, offset).unwrap_or(0)
    }
}

fn functions(file: &mut File, symbols: &Section) -> io::Result<Vec<Function>> {
    file.seek(SeekFrom::Start(symbols.offset))?;
    let count = (symbols.bytes / SYMBOL_BYTES as u64).min(SYMBOLS_MAX);
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut functions = Vec::new();
    for _ in 0..count {
        let mut symbol = [0; SYMBOL_BYTES];
        reader.read_exact(&mut symbol)?;
        let kind = symbol[4] & 15;
        let is_defined = half(&symbol, 6) != 0;
        if is_defined && (kind == SYMBOL_FUNCTION || kind == SYMBOL_CHOSEN_FUNCTION) {
            // A program is smaller than 4 GiB.
            let small = |offset| u32::try_from(word(&symbol, offset)).ok();
            let function = small(8).zip(small(16)).map(|(address, bytes)| Function {
                address,
                bytes,
                name: half_word(&symbol, 0),
            });
            functions.extend(function);
        }
    }
    functions.shrink_to_fit();
    functions.sort_unstable();
    Ok(functions)
}

const fn at(start: u64, index: usize, bytes: usize) -> u64 {
    start.saturating_add((index * bytes) as u64)
}

fn read_array<const BYTES: usize>(file: &File, offset: u64) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

fn part<const BYTES: usize>(bytes: &[u8], at: usize) -> [u8; BYTES] {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; BYTES])
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(part(bytes, at))
}

fn half_word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(part(bytes, at))
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(part(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_functions_have_their_names() {
        let own = ElfFile::open(Path::new("/proc/self/exe")).unwrap();
        assert!(own.has_all_symbols && own.functions.len() > 1000);
        let name = |function: &Function| own.name(*function);
        let found = own.functions.iter().find(|function| {
            name(function).is_some_and(|name| name.contains("elf::tests::own_functions_have_their_names"))
        });
        let found = *found.unwrap();
        let last = u64::from(found.address + found.bytes.max(1) - 1);
        assert_eq!(own.function_at(last), Some(found));
        assert_ne!(own.function_at(u64::from(found.address) - 1), Some(found));
        assert_eq!(own.function_at(u64::MAX), None);
    }

    #[test]
    fn other_files_are_no_error_for_the_process() {
        assert!(ElfFile::open(Path::new("/proc/self/status")).is_err());
        assert!(ElfFile::open(Path::new("/nowhere")).is_err());
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        let directory = std::env::temp_dir().join(format!("forebay-elf-{}", std::process::id()));
        for cut in [70, 1000, bytes.len() / 2, bytes.len() - 1000] {
            std::fs::write(&directory, &bytes[..cut]).unwrap();
            let _ = ElfFile::open(&directory);
        }
        bytes[..8192].iter_mut().skip(16).step_by(7).for_each(|byte| *byte ^= 0xa5);
        std::fs::write(&directory, &bytes).unwrap();
        let _ = ElfFile::open(&directory);
        std::fs::remove_file(&directory).unwrap();
    }
}
