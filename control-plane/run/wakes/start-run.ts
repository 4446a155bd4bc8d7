import type { GateReason } from '../../../shared/api/agent-runs.ts'
import type { RunId } from '../../../shared/lib/ids.ts'
import type { World } from '../../../shared/lib/world.ts'
import { mcpServersFor } from '../../../shared/runs/run-mcp-servers.ts'
import type { Tx } from '../../db/open.ts'
import { afterCommit, publish } from '../../db/transaction.ts'
import { finishRun } from '../endings/end-run.ts'
import { placeNew, specFor } from '../offers/offer.ts'
import { setTold } from '../../resources/platform-changes/store.ts'
import { findRun } from '../../resources/runs/store.ts'
import { changeRun, insertRun, type NewRun } from '../change-store.ts'
import type { Offer } from '../life.ts'
import type { Admission } from './admission.ts'
import { draftRun, type RunDraft, type RunVariant } from './draft.ts'
import { manifestOf } from './build-spec.ts'
import { admissionOf, instructionsBy, resolveWake, type ResolvedWake } from './resolved-wake.ts'
import type { ReadyWake, WakeAnswer, WakeContext } from './wake.ts'

/**
 * Turns a wake into what admission says, in the caller's transaction:
 *
 *     resolved wake (what it is about) -> admission -> draft (the run that would be made) -> placed -> stored, and offered or queued
 *
 * A new run is offered in the same transaction when a device that may take it is linked to this replica and has room, which saves
 * a commit on the way to its start; else it is dispatched by whoever reads the outbox.
 */
export async function startRun(tx: Tx, wake: ReadyWake, context: WakeContext): Promise<WakeAnswer> {
  const { world, offers } = context
  const resolved = await resolveWake(tx, wake, context)
  if (resolved === null) return workspaceGone
  const admission = await admissionOf(tx, resolved, context)
  if (admission.kind === 'not_dispatched') return admission
  if (wake.compacts && admission.kind !== 'admit') return nothingToCompact
  if (admission.kind === 'coalesced') return { kind: 'coalesced', runId: admission.intoRunId }
  const isDeclined = admission.kind === 'declined'
  const draft = await draftRun(tx, resolved, { ...context, isPlaced: !isDeclined })
  if (draft === null) return nothingToCompact
  if ('kind' in draft) return draft
  const { runId, own, fallback, facts, room, parent } = draft
  const { placement, offer } = room === null ? unplaced : placeNew(facts, room, offers)
  const isOnFallback = placement?.kind === 'device' && placement.onFallback
  const [variant, other] = isOnFallback ? [fallback!, null] : [own, fallback]
  const gate = placement?.kind === 'gate' ? placement.reason : null
  await store(tx, resolved, draft, { variant, other, offer, gate })
  await setTold(tx, { runId, ids: draft.told })
  if (parent && !wake.compacts) await changeRun(tx, parent.id, { type: 'followed', successorRunId: runId })
  if (isDeclined) return decline(tx, { runId, admission, world })
  if (offer !== null) {
    const { device } = offer
    const spec = specFor(device, { spec: variant.spec, run: facts, facts: room!.facts })
    afterCommit(tx, () => offers.push({ runId, fence: 1, device, taskId: resolved.task?.id ?? null, spec }))
    return { kind: 'queued', runId }
  }
  await publish(tx, { topic: 'run.queued', key: runId, at: resolved.at })
  return gate === null ? { kind: 'queued', runId } : { kind: 'pending', runId, gateReason: gate }
}

const workspaceGone = {
  kind: 'not_dispatched',
  reason: 'dispatch_build_failed',
  message: 'The workspace is gone.',
} as const

const nothingToCompact = {
  kind: 'not_dispatched',
  reason: 'dispatch_build_failed',
  message: 'The session cannot be made smaller now.',
} as const

const unplaced = { placement: null, offer: null }

/** `variant`: how the run goes; `other`: how it goes if its harness cannot be had. */
async function store(
  tx: Tx,
  { wake, mcpServers, task, environment, folder, repo, at }: ResolvedWake,
  { runId, instructions, parent, secretNames }: RunDraft,
  {
    variant,
    other,
    offer,
    gate,
  }: { variant: RunVariant; other: RunVariant | null; offer: Offer | null; gate: GateReason | null },
): Promise<void> {
  const { agent, compacts = null } = wake
  const { spec, variablesLeftOut } = variant
  const run: NewRun = {
    id: runId,
    workspaceId: agent.workspaceId,
    agentRef: agent.id,
    triggerSource: wake.triggerSource,
    requestedByRef: wake.requestedByRef,
    causedByUuid: wake.causedByUuid,
    wordsBy: [...wake.wordsBy],
    instructionsBy: instructionsBy(wake),
    harness: spec.harness,
    environmentType: environment,
    folderId: folder?.shortId ?? null,
    repoId: repo?.id ?? null,
    taskId: task?.id ?? null,
    taskKey: task?.key ?? null,
    taskTitle: task?.title ?? null,
    conversationId: wake.conversationId ?? null,
    parentRunId: parent?.id ?? null,
    modelId: spec.model,
    reasoningEffort: spec.reasoningEffort,
    permissionMode: spec.permissions.defaultMode,
    providerKeyId: variant.keyId,
    fallbackHarness: other?.spec.harness ?? null,
    fallbackKeyId: other?.keyId ?? null,
    fallbackModel: other?.spec.model ?? null,
    compacts,
    inLineSince: wake.inLineSince ?? null,
    step: wake.step ?? null,
    createdAt: at,
    offer,
    gate,
  }
  const mcpLeftOut = mcpServersFor(mcpServers, spec).leftOut
  const told = { instructions, secretKeys: secretNames.given, mcpLeftOut, variablesLeftOut }
  const manifest = manifestOf(spec, told)
  await insertRun(tx, run, { prompt: spec.prompt, spec, fallbackSpec: other?.spec ?? null, manifest })
}

async function decline(
  tx: Tx,
  { runId, admission, world }: { runId: RunId; admission: Admission & { kind: 'declined' }; world: World },
): Promise<WakeAnswer> {
  const { exitReason, message } = admission
  const run = await findRun(tx, runId)
  if (run !== null)
    await finishRun(tx, run, {
      type: 'declined',
      exitReason,
      errorMessage: message,
      at: world.now(),
      world,
    })
  return { kind: 'declined', runId, exitReason, message }
}
