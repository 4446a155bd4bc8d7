import { idFrom, type WorkflowRunId, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import type { Bus } from '../../db/bus.ts'
import { KeyedQueue } from '../../process/keyed-queue.ts'
import { listWaitingRuns } from '../../resources/workflows/call-store.ts'
import { listUnreplayed } from '../../resources/workflows/run-store.ts'
import { advance, type AdvanceDependencies } from './advance.ts'
import { HandedCalls } from './handed-calls.ts'

const mostAtStart = 5_000

type AdvancerOptions = Omit<AdvanceDependencies, 'handedCalls'> & { bus: Pick<Bus, 'on'> }

/**
 * Advances workflow runs when something of them has ended, on whichever replica hears of it; one of several that try
 * wins. Those of a workspace follow one another, and wait for none of another workspace.
 */
export class Advancer {
  private readonly options: AdvancerOptions
  private readonly handedCalls = new HandedCalls()
  private readonly work: KeyedQueue
  private unsubscribe: (() => void) | null = null

  constructor(options: AdvancerOptions) {
    this.options = options
    this.work = new KeyedQueue(options.log, 'a workflow was not advanced; the sweep tries again')
  }

  start(): void {
    if (!this.work.isStopped) return
    this.work.start()
    this.unsubscribe = this.options.bus.on('workflow.changed', ({ key, payload }) =>
      this.advanceSoon({ id: key, workspaceId: idFrom(String(payload['workspaceId'])) }),
    )
    this.work.add('start', () => this.findLeft(), 'start')
  }

  /** Goes on at once with what a server left half done when it died, and not with the next sweep. */
  private async findLeft(): Promise<void> {
    const { root, context } = this.options
    for (const run of await listUnreplayed(root, mostAtStart)) this.advanceSoon(run)
    for (const run of await listWaitingRuns(root, { endedBefore: context.world.now(), limit: mostAtStart }))
      this.advanceSoon(run)
  }

  async stop(): Promise<void> {
    this.unsubscribe?.()
    this.unsubscribe = null
    await this.work.stop()
  }

  advanceSoon({ id, workspaceId }: { id: WorkflowRunId; workspaceId: WorkspaceUuid }): void {
    this.work.add(workspaceId, () => this.advance(id), id)
  }

  /** Resolves when nothing that was asked for is still being done. */
  async idle(): Promise<void> {
    await this.work.idle()
  }

  private async advance(id: WorkflowRunId): Promise<void> {
    const outcome = await advance(id, { ...this.options, handedCalls: this.handedCalls })
    this.options.log.info({ workflowRun: id, outcome }, 'workflow advanced')
  }
}
