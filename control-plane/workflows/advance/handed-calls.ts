import type { WorkflowRunId } from '../../../shared/lib/ids.ts'
import type { CallRow } from '../../resources/workflows/call-store.ts'

/** The size of the calls of all workflow runs together. */
const keptBytes = 32 * 1024 * 1024
/** The approximate size of a call beside its text. */
const bytesPerCall = 1_024

/**
 * Calls whose results were handed over, as this process last read them. Nothing changes such a call any more, so an advance
 * reads only the others: a journal of a thousand steps would else cross the wire once for each of them. The runs that moved last
 * are kept.
 */
export class HandedCalls {
  private readonly kept = new Map<WorkflowRunId, { calls: readonly CallRow[]; bytes: number }>()
  private bytes = 0
  private readonly limit: number

  constructor(limit = keptBytes) {
    this.limit = limit
  }

  /** Returns the run's calls in no order; their `handedOrder` is 0 and up without a gap. */
  of(workflowRunId: WorkflowRunId): readonly CallRow[] {
    return this.kept.get(workflowRunId)?.calls ?? []
  }

  keep(workflowRunId: WorkflowRunId, calls: readonly CallRow[]): void {
    this.forget(workflowRunId)
    const bytes = calls.reduce((sum, { args, result }) => sum + bytesPerCall + args.length + (result?.length ?? 0), 0)
    if (calls.length === 0 || bytes > this.limit) return
    this.kept.set(workflowRunId, { calls, bytes })
    this.bytes += bytes
    for (const oldest of this.kept.keys()) {
      if (this.bytes <= this.limit) return
      this.forget(oldest)
    }
  }

  forget(workflowRunId: WorkflowRunId): void {
    const entry = this.kept.get(workflowRunId)
    if (entry === undefined) return
    this.kept.delete(workflowRunId)
    this.bytes -= entry.bytes
  }
}
