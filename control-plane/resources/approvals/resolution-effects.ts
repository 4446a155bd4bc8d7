import type { ApprovalScope, ApprovalTrigger } from '../../../shared/api/approval-words.ts'
import type { ModelCatalog } from '../../catalog/catalog.ts'
import type { PersonCaller } from '../../http/callers.ts'
import type { ImplementedRoute } from '../../http/implement.ts'
import type { ApprovingRequest } from '../platform-changes/steps/replay.ts'
import type { ApprovalRow } from './store.ts'

/**
 * Further effects of resolving an approval, by its trigger, in the same transaction. A refusal (`fail`) leaves the
 * approval open. A trigger without an entry only lets its run go on.
 */
interface ApprovalEffect {
  onApprove?(resolved: ResolvedApproval): Promise<void>
  onReject?(resolved: ResolvedApproval): Promise<void>
}

export interface ResolvedApproval {
  approval: ApprovalRow
  person: PersonCaller
  reason: string | null
  /** Set for an approved `tool_permission`. */
  scope: ApprovalScope | null
  request: ApprovingRequest
  /** Every route of the API with its handler. */
  routes: readonly ImplementedRoute[]
  catalog: ModelCatalog
}

/** The effects on other records when an approval is resolved; an approval knows none of them (`resources/resolutions`). */
export interface ResolutionEffects {
  byTrigger: Readonly<Partial<Record<ApprovalTrigger, ApprovalEffect>>>
  /** Ends the command step that was rejected. Returns false where the approval is of no command step: its asker is woken then. */
  endStepOf(rejected: ResolvedApproval): Promise<boolean>
}
