import type { ConversationId, FolderRef, RunId, SecretId, TaskId } from '../../../shared/lib/ids.ts'
import { type HarnessName, harnesses, harnessFactsOf } from '../../../shared/runs/harnesses.ts'
import { type RunSpec, takesSkills } from '../../../shared/runs/spec.ts'
import type { VariableLeftOut } from '../../../shared/runs/connection-variables.ts'
import { inOneTrip } from '../../db/one-trip.ts'
import type { Tx, Db } from '../../db/open.ts'
import { cancelRun } from '../endings/cancel-run.ts'
import { SharedRoom, type Room } from '../offers/offer.ts'
import { toRunFacts } from '../placement/facts.ts'
import { keyOf, keysOfHarness } from '../places/model-access.ts'
import type { RunFacts, RunPlace, SecretNames } from '../places/place.ts'
import { placeOfEnvironment } from '../places/places.ts'
import { findOthersOfTask, noOthers } from '../placement/waiting-store.ts'
import { isWorkPrivate } from '../placement/private-work.ts'
import { transcriptBefore } from '../../resources/conversations/transcript.ts'
import { isMember } from '../../resources/members/store.ts'
import { listCompacting } from '../../resources/runs/compaction-store.ts'
import { findDetails } from '../../resources/runs/details-store.ts'
import { findRunSkills } from '../../resources/runs/run-skills.ts'
import { findRun, type RunRow, findLastWithSession, hasWorkedOn } from '../../resources/runs/store.ts'
import { listSecretKeys } from '../../resources/secrets/store.ts'
import type { AgentRow } from '../../resources/agents/store.ts'
import { skillsHadBy } from '../../resources/skills/had.ts'
import { buildSpec, type SpecInput, runsModel, instructionsFor, type Instructions } from './build-spec.ts'
import { decidedChangesFor, noDecidedChanges } from './decided-changes.ts'
import { instructionsBy, type ResolvedWake } from './resolved-wake.ts'
import type { Refusal } from './admission.ts'
import type { ReadyWake, WakeContext } from './wake.ts'

/** A run that is about to be made. */
export interface RunDraft {
  runId: RunId
  instructions: readonly Instructions[]
  own: RunVariant
  /** The run as it would be on the agent's fallback harness; null: it has none. */
  fallback: RunVariant | null
  /** The run that it continues. */
  parent: RunRow | null
  /** The names of variables of secrets that the run is given, and of those that it does without. */
  secretNames: SecretNames
  /** Facts by which the run is placed. */
  facts: RunFacts
  /** The room that is left; null: the run is not to be placed. */
  room: Room | null
  /** The changes of which its prompt says what became. */
  told: readonly string[]
}

/** The spec that a run is given, and the agent's own key that its harness takes. */
export interface RunVariant {
  spec: RunSpec
  keyId: SecretId | null
  variablesLeftOut: readonly VariableLeftOut[]
}

/** The run that it continues, with its session as far as it can be gone on with. */
interface Parent {
  run: RunRow
  sessionId: string | null
}

/**
 * Draws up the run of a resolved wake, and locks the room on the devices for it where it is to be placed. A refusal: it would have no key for
 * its model. null: there is no session that it could make smaller.
 */
export async function draftRun(
  tx: Tx,
  resolved: ResolvedWake,
  { isPlaced, ...context }: WakeContext & { isPlaced: boolean },
): Promise<RunDraft | Refusal | null> {
  const { wake, folder, task } = resolved
  const commandStep = wake.commandStep ?? null
  const hasNews = isPlaced && commandStep === null && !wake.compacts
  const decided = hasNews ? await decidedChangesFor(tx, wake) : noDecidedChanges
  const hasSkills = commandStep === null && !wake.compacts
  const skills = hasSkills ? { skills: await skillsHadBy(tx, wake.agent) } : {}
  const input = { ...inputOf(resolved, context, decided.text), ...skills }
  const secretKeys = await listSecretKeys(tx, wake.agent.id)
  const plain = buildSpec(input)
  const place = placeOfEnvironment(resolved.environment)
  const { operatorKeys } = context
  const guarded = await place.listGuardedSecrets(tx, wake.agent.id)
  const keyed = place.keyedSpec(place.limited(plain), { secretKeys, guarded, operatorKeys, isPlaced })
  if ('kind' in keyed) {
    const { code, message } = keyed
    return { kind: 'not_dispatched', reason: 'route_gate_declined', message, code }
  }
  const { spec: built, keyId, secretNames } = keyed
  const unresumed = wake.compacts ? { ...built, skillFolders: null } : built
  const parent = await parentOf(tx, wake, { spec: unresumed, folderId: folder?.shortId ?? null })
  if (wake.compacts && parent?.sessionId == null) return null
  const isCompacting = parent !== null && !wake.compacts && !(await endCompactions(tx, parent, context))
  const { prompt } = input
  const told = commandStep === null ? prompt : unresumed.prompt
  const newSessionPrompt = await promptForNewSession(tx, wake, {
    spec: unresumed,
    prompt: told,
    hasParent: parent !== null,
  })
  const resumeSessionId = parent?.sessionId ?? null
  const next = { ...unresumed, resumeSessionId, prompt }
  // A compaction has no skills, and is of use in its session alone.
  const spec = wake.compacts ? next : await resumedSpec(tx, parent, next, newSessionPrompt)
  const { causedByUuid } = wake
  const { workspaceId } = wake.agent
  const [room, isCauseGone, ofTask, isPrivate] = await inOneTrip(tx, [
    // The room is locked first: whether another run works on the task is read once nobody else places any.
    () => (isPlaced ? (context.room ?? new SharedRoom()).lock(tx, workspaceId, context.offers) : null),
    async () => causedByUuid !== null && !(await isMember(tx, workspaceId, causedByUuid)),
    () => (task === null ? noOthers : findOthersOfTask(tx, task.id)),
    () => isWorkPrivate(tx, wake),
  ])
  const variantInput = { resolved, place, secretKeys }
  const own: RunVariant = { ...withVariables(spec, variantInput, secretNames.leftOut), keyId }
  const hasFallback = !wake.compacts && commandStep === null && place.hasFallback
  const fallbackSpec = hasFallback ? fallbackSpecOf({ ...input, prompt: newSessionPrompt }, own.spec) : null
  const fallback = fallbackSpec && {
    ...withVariables(fallbackSpec, variantInput, []),
    keyId: keyOf(fallbackSpec.harness, secretKeys),
  }
  const parentRun = parent?.run ?? null
  const waitsForOtherRun = isCompacting || ofTask.isTaken
  const isConfidential = isPrivate || secretKeys.size > 0
  const { ahead } = ofTask
  const facts = factsOf(resolved, {
    own,
    fallback,
    waitsForOtherRun,
    ahead,
    isConfidential,
    isCauseGone,
    parent: parentRun,
  })
  const { runId, instructions } = input
  return { runId, instructions, own, fallback, parent: parentRun, secretNames, facts, room, told: decided.ids }
}

type VariantInput = {
  resolved: Pick<ResolvedWake, 'connections'>
  place: RunPlace
  secretKeys: ReadonlyMap<string, SecretId>
}

function inputOf(
  { wake, workspace, overrides, folder, repo, mcpServers }: ResolvedWake,
  { world, limits, catalog }: WakeContext,
  news: string,
): SpecInput {
  const { agent, triggerSource, commandStep = null } = wake
  return {
    runId: world.id('run_'),
    agent,
    workspace,
    mcpServers,
    instructions: commandStep === null ? instructionsFor(agent, workspace) : [],
    folder,
    repo,
    prompt: [news, wake.prompt ?? `You were woken by ${triggerSource}. No prompt was given.`]
      .filter(Boolean)
      .join('\n\n'),
    allowCalls: wake.allowCalls ?? [],
    overrides,
    resumeSessionId: null,
    catalog,
    limits,
    commandStep,
  }
}

async function parentOf(
  tx: Tx,
  wake: ReadyWake,
  { spec, folderId }: { spec: RunSpec; folderId: FolderRef | null },
): Promise<Parent | null> {
  const where = { harness: spec.harness, folderId, agent: wake.agent, freshSince: wake.freshSince ?? null }
  const of = { taskId: wake.task?.id ?? null, conversationId: wake.conversationId ?? null }
  const run = wake.parent ?? (wake.commandStep == null ? await findParent(tx, of, where) : null)
  if (run === null) return null
  const goesOn = isResumable(run, where) && (await hasItsInstructions(tx, run, spec))
  return { run, sessionId: goesOn ? run.sessionId : null }
}

/** True when the session was begun with the instructions of the new run, or when the harness takes new ones. */
async function hasItsInstructions(tx: Tx, run: RunRow, spec: RunSpec): Promise<boolean> {
  if (!harnessFactsOf(spec).keepsInstructions) return true
  return (await findDetails(tx, run.id))?.spec.agentMd === spec.agentMd
}

/**
 * Ends the compactions of the session, since nobody's work waits until a session is smaller. False while a process that does it has yet to
 * leave: two that write one session would forget what one of them did.
 */
async function endCompactions(
  tx: Tx,
  { run: { agentRef, sessionId } }: Parent,
  { world, offers: { leaseMs }, room }: WakeContext,
): Promise<boolean> {
  let haveEnded = true
  for (const compaction of await listCompacting(tx, agentRef)) {
    const of = compaction.parentRunId === null ? null : await findRun(tx, compaction.parentRunId)
    if (of?.sessionId !== sessionId) continue
    await cancelRun(tx, compaction, { exitReason: 'duplicate_trigger', reason: null, world, leaseMs })
    room?.readAgain()
    if ((await findRun(tx, compaction.id))?.endedAt === null) haveEnded = false
  }
  return haveEnded
}

/**
 * The prompt for a session that knows nothing of what was said, and of what the agent did before. A program without sessions
 * remembers by itself. `hasParent`: it goes on with a run.
 */
async function promptForNewSession(
  tx: Tx,
  { agent, task, conversationId = null, commandStep = null }: ReadyWake,
  { spec, prompt, hasParent }: { spec: RunSpec; prompt: string; hasParent: boolean },
): Promise<string> {
  if (commandStep !== null || !harnessFactsOf(spec).keepsSessions) return prompt
  const { id: agentRef, workspaceId } = agent
  const [said, hasWorked] = await inOneTrip(tx, [
    () => (conversationId === null ? '' : transcriptBefore(tx, { workspaceId, conversationId, agentRef })),
    () => hasParent || (task != null && hasWorkedOn(tx, { agentRef, taskId: task.id })),
  ])
  return [hasWorked ? workedBefore : '', said, prompt].filter(Boolean).join('\n\n')
}

/** The spec with what it needs where a session is gone on with, or for a new session. */
async function resumedSpec(tx: Tx, parent: Parent | null, spec: RunSpec, promptAnew: string): Promise<RunSpec> {
  if (parent === null || spec.resumeSessionId === null) return { ...spec, prompt: promptAnew }
  // A session also knows the skills that its last run had and this one has not.
  const before = takesSkills(spec) ? null : await findDetails(tx, parent.run.id)
  if (!takesSkills(spec) && (before === null || !takesSkills(before.spec))) return spec
  const given = await findRunSkills(tx, parent.run.id)
  return { ...spec, sessionSkills: { digest: given?.digest ?? null, promptAnew } }
}

/**
 * Returns the spec with the variables of connections. The agent's secrets alone decide with which account its harness works. The spec also
 * names the secrets that stay outside of its place.
 */
function withVariables(
  spec: RunSpec,
  { resolved: { connections }, place, secretKeys }: VariantInput,
  secretsLeftOut: readonly string[],
): Pick<RunVariant, 'spec' | 'variablesLeftOut'> {
  const { variables, leftOut } = place.connectionVariables(connections, {
    secrets: new Set(secretKeys.keys()),
    harnessKeys: keysOfHarness(spec),
  })
  const connectionVariables = variables.length === 0 ? null : variables
  const outside = secretsLeftOut.map((name): VariableLeftOut => ({ name, reason: 'sandbox' }))
  return { spec: { ...spec, connectionVariables }, variablesLeftOut: [...outside, ...leftOut] }
}

/** The facts that the placement of a new run depends on. */
function factsOf(
  { wake, folder, environment }: ResolvedWake,
  run: Pick<RunDraft, 'own' | 'fallback' | 'parent'> &
    Pick<RunFacts, 'waitsForOtherRun' | 'ahead' | 'isConfidential' | 'isCauseGone'>,
): RunFacts {
  const { own, fallback, parent, ...around } = run
  const { agent, compacts, causedByUuid, wordsBy } = wake
  return toRunFacts(
    {
      agentRef: agent.id,
      harness: own.spec.harness,
      environmentType: environment,
      folderId: folder?.shortId ?? null,
      causedByUuid,
      wordsBy: [...wordsBy],
      instructionsBy: instructionsBy(wake),
      providerKeyId: own.keyId,
      modelId: own.spec.model,
      compacts: compacts ?? null,
      fallbackHarness: fallback?.spec.harness ?? null,
      fallbackKeyId: fallback?.keyId ?? null,
      fallbackModel: fallback?.spec.model ?? null,
    },
    { agent, folder, parent, sandbox: null, ...around },
  )
}

/**
 * The run as it goes on the agent's fallback harness. null: it has none, the run is on it already or runs a command, or it
 * could not hold the mode of the run.
 */
function fallbackSpecOf(input: SpecInput, own: RunSpec): RunSpec | null {
  const { agent, catalog, overrides = {} } = input
  const harness = agent.fallbackHarness
  if (harness === null || harness === own.harness || harnesses[own.harness].runsOwnCommand) return null
  if (own.permissions.defaultMode === 'strict' && !harnessFactsOf({ harness }).holdsStrict) return null
  const model = runsModel(harness, overrides.model, catalog) ? overrides.model! : null
  return buildSpec({
    ...input,
    overrides: { ...overrides, harness, model },
    resumeSessionId: null,
  })
}

const workedBefore = 'You worked on this before. That session is not here, so begin by finding out what is done.'

/** The place of a new run. A session is continued only in the same place. */
interface SessionPlace {
  agent: AgentRow
  harness: HarnessName
  folderId: FolderRef | null
  /** Sessions begun before it are not gone on with. */
  freshSince: number | null
}

/**
 * A session is gone on with where it lies: same harness, its folder was not exchanged for another, and sessions were not
 * reset since.
 */
function isResumable(parent: RunRow, { agent, harness, folderId, freshSince }: SessionPlace): boolean {
  if (!parent.sessionId || parent.agentRef !== agent.id) return false
  if (parent.createdAt <= Math.max(agent.sessionsResetAt ?? -1, freshSince ?? -1)) return false
  return parent.harness === harness && parent.folderId === folderId
}

/** The run that the next one of the agent on the same task, or in the same conversation, continues; null: begin anew. */
async function findParent(
  db: Db,
  of: { taskId: TaskId | null; conversationId: ConversationId | null },
  place: SessionPlace,
): Promise<RunRow | null> {
  const last = await findLastWithSession(db, { agentRef: place.agent.id, ...of })
  return last !== null && isResumable(last, place) ? last : null
}
