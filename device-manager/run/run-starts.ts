import type { RunId } from '../../shared/lib/ids.ts'
import type { CredentialAnswer } from '../../shared/device/credential.ts'
import type { DeviceMessage, ServerMessage } from '../../shared/device/protocol.ts'
import type { World } from '../../shared/lib/world.ts'
import type { ConnectionVariables } from '../../shared/runs/connection-variables.ts'
import type { Log } from '../log/log.ts'
import type { Start } from './hosts/run-hosts.ts'
import type { Journal } from './journal.ts'
import type { RunEvent, RunState, Stop } from './machine.ts'

export interface RunStartsOptions {
  world: Pick<World, 'uuid' | 'monotonic' | 'after'>
  log: Log
  /** The address at which this device reaches the control plane, and so its runs too: the server itself may know another address. */
  server: string
  send: (message: DeviceMessage) => boolean
  find: (runId: RunId) => RunState | null
  handle: (runId: RunId, event: RunEvent) => void
  journal: Pick<Journal, 'wasLaunched'>
  hosts: { startOf(runId: RunId): Start | null; keepStart(runId: RunId, start: Start): void }
}

type StartMessage = ServerMessage & { type: 'run.start' }
const executedBefore: Stop = {
  exitReason: 'runner_lost',
  message:
    'This device has executed the run before. Its server knows nothing of that: it was restored from an older backup.',
}

type Missed = NonNullable<Start['variablesMissed']>

/** A run waits this long for its variables, and then does without. The link may be down for a moment, so they are asked for again. */
const waitMs = 20_000
const askAgainMs = 5_000

/**
 * Starts runs with what the control plane gives them: its message has the token and the secrets. Values of connections are asked for
 * first, of all connections at once, and are then secrets like the others. All of it is kept in memory alone.
 *
 * May interleave: a start that comes again (the one that waits goes on; of one that was made, the values are kept), a cancel or the
 * loss of the lease while it waits (the machine then ignores the start).
 */
export class RunStarts {
  readonly #options: RunStartsOptions
  readonly #asking = new Set<string>()
  readonly #waiting = new Map<string, (answer: CredentialAnswer) => void>()

  constructor(options: RunStartsOptions) {
    this.#options = options
  }

  receive(message: StartMessage): void {
    const { runId, fence } = message
    const { find, handle, hosts } = this.#options
    const state = find(runId)
    if (state?.fence !== fence) return
    // The run is begun at the server by now, which takes its ending.
    if (state.phase === 'accepted' && this.#options.journal.wasLaunched(runId))
      return handle(runId, { type: 'cancel_received', stop: executedBefore })
    const wanted = state.spec.connectionVariables ?? []
    const known = hosts.startOf(runId)
    const isBegun = known !== null || (state.phase !== 'accepted' && state.phase !== 'starting')
    // A harness that runs already keeps what it was given: the value may be another one by now.
    if (wanted.length === 0 || isBegun)
      return this.#start(message, known?.secrets ?? {}, known?.variablesMissed ?? undefined)
    const key = `${runId}:${fence}`
    if (this.#asking.has(key)) return
    this.#asking.add(key)
    void this.#startWith(message, wanted).finally(() => this.#asking.delete(key))
  }

  /** Takes an answer to a request. False: it was not asked for here. */
  answered({ requestId, answer }: Pick<ServerMessage & { type: 'credential' }, 'requestId' | 'answer'>): boolean {
    const settle = this.#waiting.get(requestId)
    settle?.(answer)
    return settle !== undefined
  }

  async #startWith(message: StartMessage, wanted: readonly ConnectionVariables[]): Promise<void> {
    const values: Record<string, string> = {}
    const missed: Missed = []
    const answers = await Promise.all(wanted.map((one) => this.#ask(message, one)))
    for (const [at, { names }] of wanted.entries()) {
      const answer = answers[at]!
      const env = answer.ok ? (answer.env ?? {}) : {}
      const had = names.filter((name) => Object.hasOwn(env, name))
      for (const name of had) values[name] = env[name]!
      const others = names.filter((name) => !had.includes(name))
      const why = answer.ok ? 'The connection holds it no more.' : answer.message
      if (others.length > 0) missed.push({ names: others, why })
    }
    this.#start(message, values, missed.length === 0 ? undefined : missed)
  }

  /** Sends the start. A secret of the agent wins over a connection. */
  #start(message: StartMessage, values: Readonly<Record<string, string>>, missed: Missed | undefined): void {
    const { find, handle, hosts, server } = this.#options
    const { runId, fence, token } = message
    if (find(runId)?.fence !== fence) return
    const secrets = { ...values, ...message.secrets }
    const start: Start = { type: 'start', token, apiUrl: server, secrets }
    hosts.keepStart(runId, missed === undefined ? start : { ...start, variablesMissed: missed })
    handle(runId, { type: 'start_received', secretNames: Object.keys(secrets) })
  }

  async #ask({ runId, fence }: StartMessage, { connectionId }: ConnectionVariables): Promise<CredentialAnswer> {
    const { world, send, log } = this.#options
    const requestId = world.uuid()
    const until = world.monotonic() + waitMs
    const { promise, resolve } = Promise.withResolvers<CredentialAnswer>()
    let cancel = () => {}
    const askOnce = () => {
      if (world.monotonic() >= until) return resolve({ ok: false, message: 'svc did not answer in time.' })
      send({ type: 'credential.get', requestId, runId, fence, connectionId, isForEnv: true })
      cancel = world.after(askAgainMs, askOnce)
    }
    this.#waiting.set(requestId, resolve)
    askOnce()
    const answer = await promise
    cancel()
    this.#waiting.delete(requestId)
    if (!answer.ok) log.warn({ runId, connectionId, why: answer.message }, 'a run goes without variables')
    return answer
  }
}
