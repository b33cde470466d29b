//! The mappings of the process that hold machine code, and the end of the main thread's stack: `/proc/self/maps`.

use std::path::Path;

use crate::read;

/// A range of the address space with machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeMapping {
    /// The first address.
    pub start: usize,
    /// The address after the last.
    pub end: usize,
    /// The offset in the file that is mapped at `start`.
    pub offset: u64,
    /// The file's path, or a name in brackets: `[vdso]`. Empty: neither.
    pub path: String,
}

/// What may be executed, in the order of addresses.
#[must_use]
pub fn code_mappings() -> Vec<CodeMapping> {
    let maps = read(Path::new("/proc/self/maps")).unwrap_or_default();
    maps.lines().filter(|line| permissions(line).contains('x')).filter_map(mapping).collect()
}

/// The address after the main thread's stack.
#[must_use]
pub fn main_stack_end() -> Option<usize> {
    let maps = read(Path::new("/proc/self/maps"))?;
    maps.lines().filter_map(mapping).find(|mapping| mapping.path == "[stack]").map(|mapping| mapping.end)
}

fn permissions(line: &str) -> &str {
    line.split(' ').nth(1).unwrap_or_default()
}

/// A line: `start-end permissions offset device inode path`.
fn mapping(line: &str) -> Option<CodeMapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
    let path = fields.nth(2).unwrap_or_default().trim_start().to_owned();
    Some(CodeMapping { start: address(start)?, end: address(end)?, offset, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_their_paths() {
        let lines = [
            "55d0c0a00000-55d0c0b00000 r-xp 00001000 fe:00 42                         /opt/for bay (deleted)",
            "7ffc0000-7ffd0000 rw-p 00000000 00:00 0                                  [stack]",
            "7f0000000000-7f0000001000 r-xp 00000000 00:00 0 ",
        ];
        let of = |line| mapping(line).unwrap();
        assert_eq!((of(lines[0]).offset, of(lines[0]).path.as_str()), (0x1000, "/opt/for bay (deleted)"));
        assert_eq!((of(lines[1]).start, of(lines[1]).end), (0x7ffc_0000, 0x7ffd_0000));
        assert_eq!(of(lines[2]).path, "");
        assert_eq!(mapping("nonsense"), None);
    }

    #[test]
    fn own_code_is_mapped() {
        let own = own_code_is_mapped as fn() as usize;
        assert!(code_mappings().iter().any(|mapping| (mapping.start..mapping.end).contains(&own)));
        let local = 0_u8;
        // Tests run in threads: only the main thread's stack lies below this end.
        assert!(main_stack_end().is_some_and(|end| end > std::ptr::from_ref(&local) as usize));
    }
}
