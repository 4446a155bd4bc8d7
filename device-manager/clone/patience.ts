import { setTimeout as pause } from 'node:timers/promises'

/** The broker of a server that died is taken over by another one, or is there again, within this time. */
const patienceMs = 40_000
const pauseMs = 500

/**
 * Does a transfer again where the broker was away or left in the middle of it. What was answered, be it a refusal, is not asked for again. The
 * transfer is one that may be done twice.
 */
export async function patiently<Value>(transfer: () => Promise<Value>): Promise<Value> {
  const deadline = performance.now() + patienceMs
  for (;;) {
    try {
      return await transfer()
    } catch (error) {
      if (!isCut(error) || performance.now() > deadline) throw error
      await pause(pauseMs)
    }
  }
}

/** In the words of git and of curl, of which git has no others: they are asked to speak English (own-git.ts). */
const isCut = (error: unknown): boolean => {
  const said = error instanceof Error ? error.message : ''
  const isAnswered = /\bHTTP [45]\d\d\b|returned error: \d{3}|^remote: /m.test(said)
  return !isAnswered && cuts.test(said)
}

const cuts =
  /Failed to connect|Could(?:n't| not) connect|Connection (?:refused|reset)|(?:Recv|Send) failure|Empty reply from server|transfer closed|early EOF|hung up unexpectedly|unexpected disconnect/
