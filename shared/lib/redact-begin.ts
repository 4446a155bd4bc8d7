import { nextEntry, type Automaton } from './redact-automaton.ts'

/** Indexed by two bytes in a row, as one number: 1 where the second byte continues what the first began. */
export type BeginTable = Uint8Array

/**
 * Most bytes of an output begin nothing, or something that the next byte ends. The first of two bytes is ignored when a
 * resting automaton would be in the same state without it. That takes one look-up for all automata together instead of
 * two for each. The table is read off the automata themselves, so the result is the same as without it.
 */
export function beginsOf(automata: readonly Automaton[]): BeginTable {
  const begins = new Uint8Array(65_536)
  for (const automaton of automata) {
    for (let first = 0; first < 256; first++) {
      const state = nextEntry(automaton, 0, first)
      // The automaton rests after this byte, too, whatever comes next.
      if (state === 0) continue
      for (let second = 0; second < 256; second++) {
        const fresh = nextEntry(automaton, 0, second)
        const isSame = state > 0 && fresh >= 0 && nextEntry(automaton, state, second) === fresh
        if (!isSame) begins[(first << 8) | second] = 1
      }
    }
  }
  return begins
}

/** The first place from `from` on that must be read, at most the last byte, because its successor is not known yet. */
export function nextBegin(buffer: Uint8Array, from: number, begins: BeginTable): number {
  const last = buffer.length - 1
  let byte = buffer[from]!
  for (let at = from; at < last; at++) {
    const next = buffer[at + 1]!
    if (begins[(byte << 8) | next] === 1) return at
    byte = next
  }
  return last
}
