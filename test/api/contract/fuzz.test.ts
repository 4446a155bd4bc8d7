import fc from 'fast-check'
import { expect, it, onTestFinished } from 'vitest'
import { ApiError } from '../../../shared/api/errors.ts'
import { silentLog, type Log } from '../../../control-plane/process/log.ts'
import { isLong, repeats } from '../../kit/forms.ts'
import { seededWorld } from '../../kit/seeded-world.ts'
import { makeJudge, troubleWith, type Answer } from './fuzz-judge.ts'
import { filled, isInPool, makePool, poolNameOf, type Pool } from './fuzz-pool.ts'
import { addressOf, anyRequest, labelOf, targetsOf, type Caller, type Sent, type Target } from './fuzz-requests.ts'
import { readDocument, type OpenApiDocument } from './openapi-document.ts'
import { Stage } from './stage.ts'

/**
 * Thousands of requests made from the OpenAPI document that the server serves: such that fit, that nearly fit, and junk, by
 * callers of each kind, about things that are there and things that are not. Never a 500, always the envelope; each answer
 * has a status and a code that the document names for its route, and fits its schema there. FUZZ_SEED sends the requests of
 * a run again, byte for byte: the ids and tokens in them are made by a world of the same seed.
 */
class Fuzz {
  readonly stage: Stage
  readonly document: OpenApiDocument
  /** Says what the server logged as failures of its own. */
  readonly failures: unknown[]
  private readonly strangerToken: string
  /** A run that asks ends by it, so this is renewed with the things. */
  private runToken: string
  private pool: Pool

  static async start(seed: number): Promise<Fuzz> {
    const failures: unknown[] = []
    /** A refusal with a code, as 502, is judged by the document; what else is logged as an error is a failure. */
    const noteFailure: Log['error'] = (fields, message) => {
      const { err } = fields as { err?: unknown }
      if (!(err instanceof ApiError) || err.status === 500) failures.push([message, fields])
    }
    const log: Log = { ...silentLog, error: noteFailure, child: () => log }
    const stage = await Stage.start({ log, world: seededWorld(seed) })
    onTestFinished(() => stage.stop())
    const document = await readDocument(stage.server)
    const { token: strangerToken } = await stage.server.addPerson('owner', 'elsewhere')
    return new Fuzz({ stage, document, failures, strangerToken, pool: await makePool(stage) })
  }

  private constructor(parts: {
    stage: Stage
    document: OpenApiDocument
    failures: unknown[]
    strangerToken: string
    pool: Pool
  }) {
    this.stage = parts.stage
    this.document = parts.document
    this.failures = parts.failures
    this.strangerToken = parts.strangerToken
    this.pool = parts.pool
    this.runToken = parts.stage.live.token
  }

  async renew(isWorking: boolean): Promise<void> {
    // A request may have set a budget that is spent: no run of the new things would begin.
    const { workspaceId } = this.stage.owner
    await this.stage.server.ok(`/workspaces/${workspaceId}`, { method: 'PATCH', body: { monthlyBudgetCents: null } })
    this.pool = await makePool(this.stage, isWorking)
    this.runToken = (await this.stage.caller()).token
  }

  /** Returns what is sent, as text: the same for the same seed. */
  wireOf(sent: Sent, target: Target): Wire {
    const { body, raw, caller, headers } = sent
    const token = this.tokenOf(caller)
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(filled(body, this.pool)))
    const hasBody = target.method !== 'get' && content !== undefined
    return {
      method: target.method.toUpperCase(),
      address: addressOf(sent, target, this.pool),
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(hasBody ? { 'content-type': 'application/json' } : {}),
        // A write that can answer a stream does so unless it is told not to.
        accept: 'application/json',
        ...headers,
      },
      ...(hasBody ? { body: content } : {}),
    }
  }

  async send({ address, ...request }: Wire): Promise<Answer> {
    // About what a request takes: limits by the minute are met as seldom as by a real clock.
    this.stage.server.world.advance(10)
    const { status, text, headers } = await this.stage.server.ask(address, request)
    return { status, text, requestId: headers.get('request-id') }
  }

  private tokenOf(caller: Caller): string | null {
    const tokens = {
      owner: this.stage.owner.token,
      member: this.stage.member.token,
      worker: this.stage.worker.token,
      run: this.runToken,
      stranger: this.strangerToken,
      junk: 'svc_pat_junk',
      nobody: null,
    }
    return tokens[caller]
  }
}

interface Wire {
  method: string
  address: string
  headers: Record<string, string>
  body?: string
}

const freshEvery = 200

/** Sends so many requests, and hands each with its answer to `judge`, which throws when it is not right. */
async function walk(
  fuzz: Fuzz,
  { seed, requests }: { seed: number; requests: number },
  judge: (target: Target, wire: Wire, answer: Answer) => void,
): Promise<void> {
  const byLabel = new Map(targetsOf(fuzz.document).map((target) => [labelOf(target), target]))
  let count = 0
  await fc.assert(
    fc.asyncProperty(anyRequest(fuzz.document), async (sent) => {
      if (++count % freshEvery === 0) await fuzz.renew(count % (2 * freshEvery) === 0)
      const target = byLabel.get(sent.target)!
      const wire = fuzz.wireOf(sent, target)
      judge(target, wire, await fuzz.send(wire))
    }),
    { seed, numRuns: requests, endOnFailure: true, reporter: report },
  )
}

/** The request that failed may be long; its head says what it is. */
function report(details: fc.RunDetails<[Sent]>): void {
  if (!details.failed) return
  const request = JSON.stringify(details.counterexample).slice(0, 3_000)
  throw new Error(`FUZZ_SEED=${details.seed}, request ${details.numRuns}: ${request}`, { cause: details.errorInstance })
}

const seed = Number(process.env['FUZZ_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

it(`answers anything as the OpenAPI document says (seed ${seed})`, async () => {
  const fuzz = await Fuzz.start(seed)
  const targets = targetsOf(fuzz.document)
  const judge = makeJudge(fuzz.document)
  const good = new Set<string>()
  await walk(fuzz, { seed, requests: repeats('FUZZ_REQUESTS', { short: 1_200, long: 5_000 }) }, (target, _, answer) => {
    if (answer.status < 300) good.add(target.operation.operationId)
    const trouble = answer.status === 500 ? 'a failure of the server' : troubleWith(target, answer, judge)
    expect([trouble, fuzz.failures]).toEqual([null, []])
  })
  // Else the requests would say little: most routes of things that are there did what they are for, as far as there are
  // enough requests for each.
  const names = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map((match) => poolNameOf(path, match[1]!))
  const unnamed = targets.flatMap(({ path }) => names(path)).filter((name) => !isInPool(name))
  expect(unnamed).toEqual([])
  expect(good.size).toBeGreaterThan(targets.length * (isLong ? 2 / 3 : 1 / 2))
}, 300_000)

// Whoever draws a failure again by its seed relies on this; the short form draws no failure again.
if (isLong)
  it(`sends the same for the same seed (seed ${seed})`, async () => {
    const sentOf = async () => {
      const fuzz = await Fuzz.start(seed)
      const sent: Wire[] = []
      await walk(fuzz, { seed, requests: freshEvery + 20 }, (_, wire) => void sent.push(wire))
      return sent
    }
    const [first, again] = [await sentOf(), await sentOf()]
    expect(again).toEqual(first)
  }, 300_000)
