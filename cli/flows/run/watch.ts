import type { Client } from '../../calls/client.ts'
import type { CommandContext, Flow } from '../../context/context.ts'
import { ApiFailure, CliError } from '../../errors/cli-error.ts'
import { exitStatus } from '../../errors/exit-codes.ts'
import { followRun, isEnded } from '../../http/follow.ts'
import { fillPath, withRun } from '../../http/route-call.ts'
import { untilInterrupted } from '../../machine/interrupt.ts'
import { LiveRun } from '../../output/live-run.ts'
import { endingLine, headOf } from '../../output/live-ending.ts'
import { exitStatusOf } from '../../output/run-ending.ts'
import { oneLine } from '../../output/terminal-text.ts'
import { listAt, textAt } from '../../replies/fields.ts'

/** What holds a run is asked for this long after it was made, when it has begun or something does hold it, and again after so long. */
const whyFirstMs = 500
const whyAgainMs = 3_000

/** `run watch`: shows a run as it goes on, to its end, whose status is the exit status. */
export const runWatch: Flow = async (context) => {
  const client = await context.connect()
  return watchRun(context, { client, runId: withRun(context, context.values.params)['runId']! })
}

export interface Watched {
  client: Client
  runId: string
  /** Begins behind this event; null: with the first. */
  after?: string | null
  /** The time to watch it for; null: to its end. */
  waitMs?: number | null
}

/** Shows the run in the format of the command, and returns the exit status. Ctrl-C ends svc, and not the run. */
export async function watchRun(context: CommandContext, watched: Watched): Promise<number> {
  const { client, runId, after = null, waitMs = null } = watched
  const { out, world } = context
  const path = fillPath('/api/v1/runs/{runId}', { runId })
  const readRun = async (query = {}) => (await client.call({ method: 'GET', path, query })).body
  const isShown = out.format !== 'json'
  const live = new LiveRun({
    width: out.width,
    breaksWords: out.isTerminal,
    paint: out.paint,
    write: (text) => out.piece(text),
  })
  const run = await readRun()
  if (isShown) live.note(headOf(run), 'bold')
  const timeUp = new AbortController()
  const waiting = new AbortController()
  const stopTimer = waitMs === null ? () => undefined : world.after(waitMs, () => timeUp.abort(new Error('time is up')))
  const sayLast = () => {
    live.end()
    out.message(
      `svc: ${runId} goes on. Come back with \`svc run watch ${runId}\`, stop it with \`svc run cancel ${runId}\`.`,
    )
  }
  let isAway = false
  const onTrouble = () => {
    if (!isAway && isShown) live.note('… the server does not answer; svc waits for it', 'waits')
    else if (!isAway) out.message('svc: the server does not answer; svc waits for it.')
    isAway = true
  }
  try {
    if (isShown && !isEnded(textAt(run, 'status')))
      void tellWhy({ context, client, path, live, signal: waiting.signal })
    await untilInterrupted(sayLast, () =>
      followRun({
        client,
        world,
        runId,
        after,
        signal: timeUp.signal,
        onEvent: (event) => {
          isAway = false
          waiting.abort()
          if (isShown) live.event(event)
          else out.jsonLine(event)
        },
        drained: () => out.drained(),
        onTrouble,
      }),
    )
  } catch (error) {
    live.end()
    if (!timeUp.signal.aborted) throw error
    out.message(`svc: ${runId} goes on. Come back with \`svc run watch ${runId}\`.`)
    return exitStatus('wait_timed_out')
  } finally {
    stopTimer()
    waiting.abort()
  }
  live.end()
  const ended = await readRun({ 'expand[]': 'transcriptRead' })
  if (isShown) await tellEnd({ context, client, path, live, run: ended })
  return exitStatusOf(ended)
}

interface Place {
  context: CommandContext
  client: Client
  /** Of the run. */
  path: string
  live: LiveRun
}

/** Says what holds the run until it begins, when it changes. */
async function tellWhy({ context, client, path, live, signal }: Place & { signal: AbortSignal }): Promise<void> {
  const { world } = context
  const pause = (ms: number) => world.sleep(ms, signal).catch(() => undefined)
  let told = ''
  await pause(whyFirstMs)
  while (!signal.aborted) {
    const why = await optional(client, `${path}/why`)
    if (signal.aborted) return
    const because = textAt(why, 'because')
    const command = textAt(why, 'command')
    if (textAt(why, 'state') === 'waits' && because !== null && because !== told) {
      told = because
      live.note(`${because} ${textAt(why, 'next') ?? ''}`.trim(), 'waits')
      if (command !== null) live.note(`  ${command}`)
    }
    await pause(whyAgainMs)
  }
}

/** The last lines: how it ended, and what a person can do now. */
async function tellEnd({ client, path, live, run }: Place & { run: unknown }): Promise<void> {
  const changes = textAt(run, 'startedAt') === null ? null : await optional(client, `${path}/change-set`)
  const [line, tone] = endingLine(run, changes)
  live.note(line, tone)
  const id = textAt(run, 'id') ?? ''
  const [kind, asked] = [textAt(run, 'waitingOn', 'kind'), textAt(run, 'waitingOn', 'id')]
  if (kind === 'approval' && asked !== null)
    live.note(`  svc approval get ${asked}\n  svc approval approve ${asked}\n  or: svc approval reject ${asked}`)
  else if (kind === 'question' && asked !== null) {
    const question = await optional(client, fillPath('/api/v1/questions/{id}', { id: asked }))
    for (const option of listAt(question, 'options')) live.note(`  - ${optionLine(option)}`)
    live.note(`  svc question answer ${asked} "..."`)
  } else if (textAt(run, 'status') === 'failed') live.note(`  svc why ${id}`)
  else if (listAt(changes, 'files').length > 0) live.note(`  svc run diff ${id}`)
}

/** Resolves with null where the server knows it not, or does not answer now: it is beside what was asked for. */
async function optional(client: Client, path: string): Promise<unknown> {
  try {
    return (await client.call({ method: 'GET', path })).body
  } catch (error) {
    if (error instanceof ApiFailure || error instanceof CliError) return null
    throw error
  }
}

/** The key is what is typed, the label what it means. */
function optionLine(option: unknown): string {
  const [key, label] = [textAt(option, 'key') ?? '', textAt(option, 'label') ?? '']
  return oneLine(key === label ? key : `${key}: ${label}`)
}
