//! From addresses to names, and the frames that a sample lacks.

use std::collections::HashMap;
use std::path::Path;

use host::CodeMapping;

use crate::elf::{ElfFile, Function};
use crate::instructions::{CALL_BYTES_MAX, Call, call_before, has_frame};
use crate::ring::Sample;

/// Bytes of a function that are searched for the set-up of its frame.
const SEARCHED_BYTES_MAX: u64 = 16 * 1024;
/// The outermost function that takes the sample of an allocation.
const SAMPLER: &str = "profile::heap::count";
/// It is among so many frames.
const SAMPLER_FRAMES_MAX: usize = 6;
/// Bytes of the longest instruction that is looked at.
const NEXT_BYTES: usize = 4;

/// The code of the process: its mappings, and the files they come from.
pub(crate) struct Code {
    modules: Vec<Module>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    places: HashMap<usize, Place>,
    calls: HashMap<usize, Option<Call>>,
    frames: HashMap<usize, bool>,
}

struct Module {
    mapping: CodeMapping,
    file: Option<ElfFile>,
}

/// Where an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// The number of its name.
    name: u32,
    /// The first address of its function, if that is known.
    function: Option<usize>,
}

impl Code {
    pub(crate) fn of_process(mappings: Vec<CodeMapping>) -> Self {
        let own = std::fs::read_link("/proc/self/exe").unwrap_or_default();
        let module = |mapping: CodeMapping| {
            // The file may have been replaced since the start; this path opens the one that runs.
            let is_own = own == Path::new(&mapping.path);
            let path = if is_own { "/proc/self/exe" } else { &mapping.path };
            let file = if path.starts_with('/') { ElfFile::open(Path::new(path)).ok() } else { None };
            Module { mapping, file }
        };
        let (numbers, places, calls, frames) = Default::default();
        let modules = mappings.into_iter().map(module).collect();
        Self { modules, names: Vec::new(), numbers, places, calls, frames }
    }

    /// Whether the program's own functions have names.
    pub(crate) fn has_symbols(&self) -> bool {
        let own = Self::has_symbols as fn(&Self) -> bool as usize;
        self.module_of(own).and_then(|module| module.file.as_ref()).is_some_and(|file| file.has_all_symbols)
    }

    /// All names that were used, by their numbers.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }

    /// The number of a name.
    pub(crate) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Puts the numbers of the names of a stack into `stack`, from the innermost.
    pub(crate) fn resolve(&mut self, sample: &Sample, stack: &mut Vec<u32>) {
        let Some((instruction, callers)) = sample.frames.split_first() else { return };
        let place = self.place(*instruction);
        stack.push(place.name);
        if !sample.candidates.is_empty() && !self.finds_frame(*instruction, place) {
            self.add_hidden_callers(place, &sample.candidates, callers.first().copied(), stack);
        }
        for caller in callers {
            // What doesn't follow a call is no return address: the rest of the stack can't be followed.
            if self.call_before(*caller).is_none() {
                break;
            }
            let place = self.place(*caller - 1);
            stack.push(place.name);
        }
        self.leave_out_sampler(stack);
    }

    /// Leaves out the functions that take the sample of an allocation.
    fn leave_out_sampler(&self, stack: &mut Vec<u32>) {
        let of_sampler = |frame: &u32| self.names.get(*frame as usize).is_some_and(|name| name == SAMPLER);
        if let Some(last) = stack.iter().take(SAMPLER_FRAMES_MAX).position(of_sampler) {
            stack.drain(..=last);
        }
    }

    /// A function without a frame pointer leaves its caller out of the chain of frames, and so do its callers of the same kind. Their
    /// return addresses are on the stack below the first frame, among other words: a return address follows a call of the function before.
    fn add_hidden_callers(
        &mut self,
        mut callee: Place,
        candidates: &[usize],
        first_frame: Option<usize>,
        stack: &mut Vec<u32>,
    ) {
        // The function that the frame's owner was called as.
        let owner = first_frame.and_then(|first| self.target(first)).map(|target| self.place(target));
        if owner.is_some_and(|owner| owner == callee) {
            return;
        }
        // Without any frame the words may be left over from earlier calls: only direct calls prove themselves.
        let is_strict = first_frame.is_none();
        for candidate in candidates {
            let fits = match (self.call_before(*candidate), self.target(*candidate)) {
                (None, _) => false,
                // Nothing is known of an indirect call, nor of one through a table, whose entries have no names.
                (_, Some(target)) => {
                    let called = self.place(target);
                    called == callee || (!is_strict && (called.function.is_none() || callee.function.is_none()))
                }
                (Some(_), None) => !is_strict,
            };
            if !fits {
                continue;
            }
            callee = self.place(*candidate - 1);
            stack.push(callee.name);
            if owner == Some(callee) || (owner.is_none() && self.finds_frame(*candidate, callee)) {
                return;
            }
        }
        stack.extend(owner.map(|owner| owner.name));
    }

    /// What the call before a return address calls, if that is in the call itself.
    fn target(&mut self, caller: usize) -> Option<usize> {
        let Some(Call::Direct(distance)) = self.call_before(caller) else { return None };
        caller.checked_add_signed(distance.try_into().ok()?)
    }

    fn module_of(&self, address: usize) -> Option<&Module> {
        self.modules.iter().find(|module| (module.mapping.start..module.mapping.end).contains(&address))
    }

    fn place(&mut self, address: usize) -> Place {
        if let Some(place) = self.places.get(&address) {
            return *place;
        }
        let (name, function) =
            self.module_of(address).map_or_else(|| (format!("{address:#x}"), None), |module| module.describe(address));
        let place = Place { name: self.number(&name), function };
        self.places.insert(address, place);
        place
    }

    fn call_before(&mut self, caller: usize) -> Option<Call> {
        if let Some(call) = self.calls.get(&caller) {
            return *call;
        }
        let call = self.module_of(caller).and_then(|module| module.call_before(caller));
        self.calls.insert(caller, call);
        call
    }

    fn finds_frame(&mut self, instruction: usize, place: Place) -> bool {
        if let Some(has) = self.frames.get(&instruction) {
            return *has;
        }
        let has = place
            .function
            .is_some_and(|start| self.module_of(start).is_some_and(|module| module.has_frame(start, instruction)));
        self.frames.insert(instruction, has);
        has
    }
}

impl Module {
    const fn offset_of(&self, address: usize) -> u64 {
        (address - self.mapping.start) as u64 + self.mapping.offset
    }

    /// The name for an address, and the first address of its function.
    fn describe(&self, address: usize) -> (String, Option<usize>) {
        let base = self.mapping.path.rsplit('/').next().unwrap_or_default();
        let unnamed = || format!("[{}]", base.trim_matches(['[', ']']));
        let Some(file) = &self.file else { return (unnamed(), None) };
        let Some(inside) = file.address_of(self.offset_of(address)) else { return (unnamed(), None) };
        let named = |function: Function| {
            let back = usize::try_from(inside.checked_sub(function.address.into())?).ok()?;
            Some((file.name(function)?, Some(address - back)))
        };
        let found = file.function_at(inside).and_then(named);
        found.unwrap_or_else(|| {
            let name =
                if file.has_all_symbols || !self.is_own() { unnamed() } else { format!("{inside:#x} (no symbols)") };
            (name, None)
        })
    }

    fn is_own(&self) -> bool {
        (self.mapping.start..self.mapping.end).contains(&(Self::is_own as fn(&Self) -> bool as usize))
    }

    fn call_before(&self, caller: usize) -> Option<Call> {
        let mut bytes = [0; CALL_BYTES_MAX];
        let start = caller.checked_sub(CALL_BYTES_MAX).filter(|start| *start >= self.mapping.start)?;
        let Some(file) = &self.file else { return Some(Call::Indirect) };
        let read = file.read_at(&mut bytes, self.offset_of(start));
        call_before(bytes.get(..read).filter(|bytes| bytes.len() == CALL_BYTES_MAX)?)
    }

    /// Whether the function that begins at `start` has set up its frame before this instruction.
    fn has_frame(&self, start: usize, instruction: usize) -> bool {
        let Some(file) = &self.file else { return false };
        let length = (instruction.saturating_sub(start) as u64).min(SEARCHED_BYTES_MAX);
        let mut before = vec![0; usize::try_from(length).unwrap_or(0)];
        let read = file.read_at(&mut before, self.offset_of(start));
        let mut next = [0; NEXT_BYTES];
        file.read_at(&mut next, self.offset_of(instruction));
        has_frame(&before[..read], &next)
    }
}
