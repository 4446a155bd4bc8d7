import type { RunId } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { World } from '../../../shared/lib/world.ts'
import type { ExitReason } from '../../../shared/runs/exit-reasons.ts'
import type { Db } from '../../db/open.ts'
import type { Bus } from '../../db/bus.ts'
import type { Link, LinkRegistry } from '../../link/registry.ts'
import type { Log } from '../../process/log.ts'
import { findAgent } from '../../resources/agents/store.ts'
import { claimRun, claimRuns, type Claim, type ClaimedRun } from '../change-store.ts'
import { listSpecs } from '../../resources/runs/details-store.ts'
import { findRun, type RunRow } from '../../resources/runs/store.ts'
import { startAllOn } from './lease.ts'
import { placeOfEnvironment } from '../places/places.ts'
import { VaultError, type Vault } from '../../vault/vault.ts'
import { mintRunToken } from '../../http/run-token.ts'
import type { RunTokenKeys } from '../../http/run-token-keys.ts'
import { inTransaction } from '../../db/transaction.ts'
import { Together } from '../../process/together.ts'

export interface RunStarterOptions {
  root: Knex
  world: World
  log: Log
  bus: Bus
  links: LinkRegistry
  runTokenKeys: Pick<RunTokenKeys, 'present'>
  /** Opens the secrets that a run's agent was given. */
  vault: Pick<Vault, 'open'>
  /** The address at which a run's `svc` reaches the API. */
  apiUrl(): string
}

/** Runs that are claimed at once. */
const mostClaims = 200
/** The key of claims that change nothing but the run. No workspace has such an id. */
const alone = ''

type LeftOut = 'left_out'

/**
 * The second half of dispatch: the device took the run, so it becomes the device's, and gets what it needs to start. What devices accept at
 * one moment is claimed together: by one statement where the claim changes nothing else, and in a transaction for each workspace where the
 * runs work on tasks.
 */
export class RunStarter {
  private readonly options: RunStarterOptions
  private readonly claims: Together<Claim, ClaimedRun | LeftOut | null>
  private readonly unsubscribe: (() => void)[] = []

  constructor(options: RunStarterOptions) {
    this.options = options
    this.claims = new Together({
      most: mostClaims,
      all: (claims, key) => this.claimAll(claims, key),
      onSplit: (error, count) =>
        options.log.warn({ err: error, runs: count }, 'runs were not claimed together; each is by itself'),
    })
  }

  listen(): void {
    this.unsubscribe.push(
      this.options.bus.on('run.cancel', (row) => {
        this.forward(row.key, row.payload.withdrawn === true).catch((error: unknown) =>
          this.options.log.error({ err: error, runId: row.key }, 'a cancel was not handed on'),
        )
      }),
    )
  }

  stop(): void {
    for (const off of this.unsubscribe.splice(0)) off()
  }

  /**
   * Answer to `run.accepted`. Said again, it gets the same answer and changes nothing. `isLone`: the run is known to work
   * on no task.
   */
  async claim(link: Link, accepted: { runId: RunId; fence: number; isLone: boolean }): Promise<void> {
    const { root } = this.options
    const { runId, fence } = accepted
    const claimed = await this.take(link, accepted)
    const run = claimed?.run ?? (await findRun(root, runId))
    const ours = run && run.fence === fence && run.device === link.publicId && run.leaseState === 'claimed'
    if (!ours) return void link.send({ type: 'run.withdrawn', runId, fence, reason: 'no longer offered' })
    if (claimed) {
      const secrets = claimed.hasSecrets ? await this.secretsOf(root, run) : {}
      this.sendStart(link, run, { tokenGeneration: claimed.tokenGeneration, secrets })
      this.options.bus.signal(`run:${runId}`)
    } else await this.start(link, run)
    // A cancel that came between offer and claim.
    if (run.cancelRequestedAt !== null) this.cancel(link, run)
  }

  /** Null: it is no longer offered to the device. */
  private async take(
    link: Link,
    { runId, fence, isLone }: { runId: RunId; fence: number; isLone: boolean },
  ): Promise<ClaimedRun | null> {
    const key = isLone ? alone : link.workspaceId
    const claim = { runId, fence, device: link.publicId, at: this.options.world.now(), ...(isLone && { isLone }) }
    const claimed = await this.claims.add(key, claim)
    return claimed === 'left_out' ? claimRun(this.options.root, claim) : claimed
  }

  /** The claims with all that the runs' starts change; without tasks they are the claims alone. */
  private async claimAll(claims: readonly Claim[], key: string): Promise<(ClaimedRun | LeftOut | null)[]> {
    const { root, world } = this.options
    const isAlone = key === alone
    const claimed = isAlone
      ? await claimRuns(root, claims, { areFree: true })
      : await inTransaction(root, (tx) => startAllOn(tx, claims, world), { locks: [key] })
    const byRun = new Map(claimed.map((each) => [each.run.id, each]))
    return claims.map(({ runId, fence, device }) => {
      const own = byRun.get(runId)
      if (own?.run.fence === fence && own.run.device === device) return own
      // Among many a run was left out, too, of which somebody else was writing the row.
      return isAlone && claims.length > 1 ? 'left_out' : null
    })
  }

  async start(link: Link, run: RunRow): Promise<void> {
    const { root } = this.options
    const agent = await findAgent(root, run.agentRef)
    const secrets = await this.secretsOf(root, run)
    this.sendStart(link, run, { tokenGeneration: agent?.tokenGeneration ?? 0, secrets })
  }

  /** A run starts without the secrets that this server cannot open, since nothing else of it would then start either. */
  private async secretsOf(db: Db, run: RunRow): Promise<Record<string, string>> {
    try {
      const { vault, world } = this.options
      const findSpec = async () => (await listSpecs(db, [run.id])).get(run.id) ?? null
      return await placeOfEnvironment(run.environmentType).secretsFor(db, run, { vault, world, findSpec })
    } catch (error) {
      if (!(error instanceof VaultError)) throw error
      this.options.log.error({ err: error, runId: run.id }, 'the secrets of a run cannot be opened')
      return {}
    }
  }

  private sendStart(
    link: Link,
    run: RunRow,
    { tokenGeneration, secrets }: { tokenGeneration: number; secrets: Record<string, string> },
  ): void {
    const { runTokenKeys, world } = this.options
    const { id: runId, fence, agentRef, workspaceId } = run
    const subject = { runId, fence, agentRef, workspaceId, tokenGeneration }
    const token = mintRunToken(runTokenKeys.present, subject, world.now())
    link.send({ type: 'run.start', runId, fence, apiUrl: this.options.apiUrl(), token, secrets })
  }

  cancel(link: Link, run: RunRow): void {
    link.send({
      type: 'run.cancel',
      runId: run.id,
      fence: run.fence,
      exitReason: (run.cancelExitReason ?? 'interrupted') as ExitReason,
      reason: run.cancelReason,
    })
  }

  /** A cancel was committed, here or on another replica: tells the device if its link is ours. */
  private async forward(runId: RunId, withdrawn: boolean): Promise<void> {
    const { root, links } = this.options
    const run = await findRun(root, runId)
    const link = run?.device ? links.find(run.device) : null
    if (!run || !link) return
    if (withdrawn) link.send({ type: 'run.withdrawn', runId, fence: run.fence, reason: 'cancelled' })
    else if (run.endedAt === null) this.cancel(link, run)
    else link.send({ type: 'run.refused', runId, fence: run.fence, reason: 'run_ended' })
  }
}
