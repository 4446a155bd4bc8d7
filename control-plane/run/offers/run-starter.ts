import type { RunId } from '../../../shared/lib/ids.ts'
import type { Knex } from 'knex'
import type { World } from '../../../shared/lib/world.ts'
import type { ExitReason } from '../../../shared/runs/exit-reasons.ts'
import type { Db, Tx } from '../../db/open.ts'
import type { Bus } from '../../db/bus.ts'
import type { Link, LinkRegistry } from '../../link/registry.ts'
import type { Log } from '../../process/log.ts'
import { findAgent } from '../../resources/agents/store.ts'
import { claimRun, type ClaimedRun } from '../change-store.ts'
import { listSpecs } from '../../resources/runs/details-store.ts'
import { findRun, type RunRow } from '../../resources/runs/store.ts'
import { startOn } from './lease.ts'
import { placeOfEnvironment } from '../places/places.ts'
import { VaultError, type Vault } from '../../vault/vault.ts'
import { mintRunToken } from '../../http/run-token.ts'
import { inTransaction } from '../../db/transaction.ts'

export interface RunStarterOptions {
  root: Knex
  world: World
  log: Log
  bus: Bus
  links: LinkRegistry
  runTokenKey: Uint8Array
  /** Opens the secrets that a run's agent was given. */
  vault: Pick<Vault, 'open'>
  /** The address at which a run's `svc` reaches the API. */
  apiUrl(): string
}

/** The second half of dispatch: the device took the run, so it becomes the device's, and gets what it needs to start. */
export class RunStarter {
  private readonly options: RunStarterOptions
  private readonly unsubscribe: (() => void)[] = []

  constructor(options: RunStarterOptions) {
    this.options = options
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
    const { root, log } = this.options
    const { runId, fence } = accepted
    const claimed = await this.take(link, accepted)
    const run = claimed?.run ?? (await findRun(root, runId))
    const ours = run && run.fence === fence && run.device === link.publicId && run.leaseState === 'claimed'
    if (!ours) return void link.send({ type: 'run.withdrawn', runId, fence, reason: 'no longer offered' })
    if (claimed) {
      const secrets = claimed.hasSecrets ? await this.secretsOf(root, run) : {}
      this.sendStart(link, run, { tokenGeneration: claimed.tokenGeneration, secrets })
      log.info({ runId, fence, device: link.publicId }, 'run claimed')
      this.options.bus.signal(`run:${runId}`)
    } else await this.start(link, run)
    // A cancel that came between offer and claim.
    if (run.cancelRequestedAt !== null) this.cancel(link, run)
  }

  /** The claim with all that the run's start changes; without a task that is the claim alone. */
  private async take(
    link: Link,
    accepted: { runId: RunId; fence: number; isLone: boolean },
  ): Promise<ClaimedRun | null> {
    const { root, world } = this.options
    const at = world.now()
    const claim = { runId: accepted.runId, fence: accepted.fence, device: link.publicId, at }
    if (accepted.isLone) return claimRun(root, { ...claim, isLone: true })
    const start = (tx: Tx) => startOn(tx, { ...claim, world })
    return inTransaction(root, start, { locks: [link.workspaceId] })
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
    const { runTokenKey, world } = this.options
    const { id: runId, fence, agentRef, workspaceId } = run
    const token = mintRunToken(runTokenKey, { runId, fence, agentRef, workspaceId, tokenGeneration }, world.now())
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
