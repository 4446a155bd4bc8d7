/** What a colour says: that something is well, failed, waits for somebody, is at work, or matters less. */
export type Tone = 'good' | 'bad' | 'waits' | 'busy' | 'dim' | 'bold'

const codes: Readonly<Record<Tone, number>> = { good: 32, bad: 31, waits: 33, busy: 36, dim: 2, bold: 1 }

export type Paint = (text: string, tone: Tone | null) => string

export const paintFor =
  (hasColours: boolean): Paint =>
  (text, tone) =>
    hasColours && tone !== null && text !== '' ? `\u001b[${codes[tone]}m${text}\u001b[0m` : text

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
