/** What a colour says: that something is well, failed, waits for somebody, is at work, or matters less. */
export type Tone = 'good' | 'bad' | 'waits' | 'busy' | 'dim' | 'bold'

/** The colours that a terminal has by its own settings. */
const basic: Readonly<Record<Tone, string>> = { good: '32', bad: '31', waits: '33', busy: '36', dim: '2', bold: '1' }

/** Of 256 colours those that are read on white as on black: on white, the yellow and the cyan of most terminals are not. */
export const palette = { good: 28, bad: 167, waits: 130, busy: 31 } as const
const ofPalette: Readonly<Record<Tone, string>> = {
  ...basic,
  good: `38;5;${palette.good}`,
  bad: `38;5;${palette.bad}`,
  waits: `38;5;${palette.waits}`,
  busy: `38;5;${palette.busy}`,
}

export type Paint = (text: string, tone: Tone | null) => string

/** The colours of a terminal: none, those that it names itself, or 256. */
export type Colours = 'none' | 'basic' | 'palette'

export function paintFor(colours: Colours): Paint {
  if (colours === 'none') return (text) => text
  const codes = colours === 'palette' ? ofPalette : basic
  return (text, tone) => (tone !== null && text !== '' ? `\u001b[${codes[tone]}m${text}\u001b[0m` : text)
}

const words: Readonly<Record<Tone, readonly string[]>> = {
  good: [
    'succeeded',
    'completed',
    'done',
    'active',
    'accepted',
    'connected',
    'approve',
    'resolved',
    'merged',
    'passed',
    'ok',
    'allowed',
    'added',
    'linked',
  ],
  bad: [
    'failed',
    'error',
    'rejected',
    'expired',
    'revoked',
    'lost',
    'stalled',
    'missing',
    'not_permitted',
    'not_a_directory',
    'not_refused',
    'urgent',
    'deleted',
    'disconnected',
  ],
  waits: [
    'queued',
    'waiting',
    'pending',
    'proposed',
    'paused',
    'human_required',
    'high',
    'warning',
    'in_review',
    'dispatched',
  ],
  busy: ['running', 'in_progress', 'creating', 'starting', 'salvaging', 'modified', 'renamed'],
  dim: ['cancelled', 'archived', 'terminated', 'retired', 'closed', 'idle', 'low', 'normal', 'info', 'not_applicable'],
  bold: ['open'],
}
const toneOfWord = new Map(
  Object.entries(words).flatMap(([tone, list]) => list.map((word) => [word, tone as Tone] as const)),
)

export const toneOf = (state: string): Tone | null => toneOfWord.get(state) ?? null
