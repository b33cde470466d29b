//! What a few instructions say about the frames of a stack: whether a function has set up its frame, and what a call calls. It reads code
//! from the program's file, after the sample.

/// The call before a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// It calls the function at this distance from the return address.
    Direct(i64),
    /// It calls what a register or a table says.
    Indirect,
}

/// Bytes before a return address in which its call is.
pub(crate) const CALL_BYTES_MAX: usize = if cfg!(target_arch = "aarch64") { 4 } else { 7 };

/// The call that ends with these bytes, if there is one.
pub(crate) fn call_before(bytes: &[u8]) -> Option<Call> {
    if cfg!(target_arch = "aarch64") { call_of_aarch64(bytes) } else { call_of_x86_64(bytes) }
}

/// Whether the function whose first bytes these are, up to the current instruction, has set up its frame. `next` has the bytes of the
/// current instruction.
pub(crate) fn has_frame(before: &[u8], next: &[u8]) -> bool {
    if cfg!(target_arch = "aarch64") { has_frame_on_aarch64(before, next) } else { has_frame_on_x86_64(before, next) }
}

fn call_of_x86_64(bytes: &[u8]) -> Option<Call> {
    let end = bytes.len();
    if let Some([0xe8, distance @ ..]) = end.checked_sub(5).and_then(|start| bytes[start..].first_chunk::<5>()) {
        return Some(Call::Direct(i32::from_le_bytes(*distance).into()));
    }
    // `ff` with the operation 2, and the length that its operand has.
    (2..=end.min(7)).find_map(|length| {
        let [0xff, operand, rest @ ..] = &bytes[end - length..] else { return None };
        let (mode, operation, base) = (operand >> 6, operand >> 3 & 7, operand & 7);
        let displacement = match mode {
            0 if base == 5 => 4,
            0 | 3 => 0,
            1 => 1,
            _ => 4,
        };
        let index = usize::from(mode != 3 && base == 4);
        (operation == 2 && rest.len() == displacement + index).then_some(Call::Indirect)
    })
}

/// It has executed `mov rbp, rsp`, and the current instruction isn't the return, before which `rbp` is restored.
fn has_frame_on_x86_64(before: &[u8], next: &[u8]) -> bool {
    let is_set = before.windows(3).any(|bytes| bytes == [0x48, 0x89, 0xe5] || bytes == [0x48, 0x8b, 0xec]);
    is_set && next.first() != Some(&0xc3)
}

fn instructions(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn call_of_aarch64(bytes: &[u8]) -> Option<Call> {
    let instruction = instructions(bytes.get(bytes.len().checked_sub(4)?..)?).next()?;
    if instruction >> 26 == 0b100101 {
        // 26 bits with a sign, in instructions, from the call itself.
        let distance = i64::from((instruction << 6).cast_signed() >> 6) * 4;
        return Some(Call::Direct(distance - 4));
    }
    // `blr`, also those that check a signature.
    (instruction & 0xfebf_f000 == 0xd63f_0000).then_some(Call::Indirect)
}

/// It has executed `stp x29, x30`, and the current instruction isn't the return, before which both are restored.
fn has_frame_on_aarch64(before: &[u8], next: &[u8]) -> bool {
    // Without the offset, and without the bits that say whether the stack pointer moves.
    let is_saved = instructions(before).any(|instruction| instruction & 0xfe40_7fff == 0xa800_7bfd);
    is_saved && instructions(next).next() != Some(0xd65f_03c0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_x86_64_are_recognised() {
        let direct = |distance| Some(Call::Direct(distance));
        for (bytes, wanted) in [
            (&[0x90, 0x90, 0xe8, 0x10, 0, 0, 0][..], direct(16)),
            (&[0xe8, 0xf0, 0xff, 0xff, 0xff], direct(-16)),
            // call rax, call r12, call [rip + 4], call [rbx + 8], call [rsp + 8], call [r12 + 0x118]
            (&[0x90, 0xff, 0xd0], Some(Call::Indirect)),
            (&[0x41, 0xff, 0xd4], Some(Call::Indirect)),
            (&[0xff, 0x15, 4, 0, 0, 0], Some(Call::Indirect)),
            (&[0x90, 0xff, 0x53, 8], Some(Call::Indirect)),
            (&[0xff, 0x54, 0x24, 8], Some(Call::Indirect)),
            (&[0x41, 0xff, 0x94, 0x24, 0x18, 1, 0, 0][1..], Some(Call::Indirect)),
            // jmp rax, push [rip + 4], mov
            (&[0xff, 0xe0], None),
            (&[0xff, 0x35, 4, 0, 0, 0], None),
            (&[0x48, 0x89, 0xe5], None),
            (&[], None),
        ] {
            assert_eq!(call_of_x86_64(bytes), wanted, "{bytes:x?}");
        }
    }

    #[test]
    fn frames_of_x86_64_are_recognised() {
        let prologue = [0x55, 0x41, 0x57, 0x48, 0x89, 0xe5, 0x50];
        assert!(has_frame_on_x86_64(&prologue, &[0x90]));
        assert!(!has_frame_on_x86_64(&prologue, &[0xc3]));
        assert!(!has_frame_on_x86_64(&prologue[..3], &[0x48, 0x89, 0xe5]));
    }

    #[test]
    fn code_of_aarch64_is_recognised() {
        let code = |instructions: &[u32]| instructions.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        // bl +8, bl -4, blr x8, blraaz x8, br x8
        assert_eq!(call_of_aarch64(&code(&[0x9400_0002])), Some(Call::Direct(4)));
        assert_eq!(call_of_aarch64(&code(&[0xd503_201f, 0x97ff_ffff])), Some(Call::Direct(-8)));
        assert_eq!(call_of_aarch64(&code(&[0xd63f_0100])), Some(Call::Indirect));
        assert_eq!(call_of_aarch64(&code(&[0xd63f_091f])), Some(Call::Indirect));
        assert_eq!(call_of_aarch64(&code(&[0xd61f_0100])), None);
        // stp x29, x30, [sp, #-32]!; stp x29, x30, [sp, #16]; stp x20, x19, [sp, #16]
        let (pushed, stored, other) = (0xa9be_7bfd, 0xa901_7bfd, 0xa901_4ff4);
        for (before, wanted) in [(pushed, true), (stored, true), (other, false)] {
            assert_eq!(has_frame_on_aarch64(&code(&[before]), &code(&[0xd503_201f])), wanted);
        }
        assert!(!has_frame_on_aarch64(&code(&[pushed]), &code(&[0xd65f_03c0])));
    }
}
