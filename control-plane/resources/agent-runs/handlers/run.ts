import { agentRunRoutes, startRunReply, type StartRunReply } from '../../../../shared/api/agent-runs.ts'
import { fail } from '../../../../shared/api/errors.ts'
import type { ExitReason } from '../../../../shared/runs/exit-reasons.ts'
import { type HarnessName, harnesses } from '../../../../shared/runs/harnesses.ts'
import type { ModelCatalog } from '../../../catalog/catalog.ts'
import type { RunOverrides } from '../../../run/wakes/build-spec.ts'
import type { Db } from '../../../db/open.ts'
import { asked } from '../../../trust/askers.ts'
import type { Person } from '../../../trust/rules.ts'
import { causeOfCaller } from '../../runs/cause.ts'
import { startRun } from '../../../run/wakes/start-run.ts'
import type { WakeAnswer } from '../../../run/wakes/wake.ts'
import { publicIdOf, type Caller } from '../../../http/callers.ts'
import { implement, type HandlerInput, type ImplementedRoute } from '../../../http/implement.ts'
import type { ResourceDependencies } from '../../dependencies.ts'
import { lookUpTask, checkRunSettings } from '../../tasks/lookup.ts'
import { loadAuthors } from '../../tasks/authors.ts'
import { taskPrompt } from '../../tasks/present.ts'
import { authorsOf } from '../../tasks/rules.ts'
import type { TaskRow } from '../../tasks/store.ts'
import { addOutputSchemas } from '../../runs/steps/add-schemas.ts'
import { checkSchemas } from '../../runs/output-schemas.ts'
import { claimWakeKey, findWakeAnswer, replaceWakeAnswer } from '../../../run/wakes/key-store.ts'
import { acceptAgent } from '../../agents/steps/accept.ts'
import { lookUpAgent, unknownAgent } from '../../agents/lookup.ts'
import type { AgentRow } from '../../agents/store.ts'

type Dependencies = Pick<ResourceDependencies, 'catalog' | 'costly' | 'wakeContext'>

type Start = HandlerInput<typeof agentRunRoutes.start>
const keptMs = 24 * 3_600_000

export function agentRunHandlers(deps: Dependencies): ImplementedRoute[] {
  return implement(agentRunRoutes, {
    start: {
      before: async ({ caller, body }) => {
        if (body.outputSchemas !== undefined) await checkSchemas(body.outputSchemas, { ...deps, caller })
      },
      handle: (input) => start(input, deps),
    },
  })
}

async function start(input: Start, deps: Dependencies): Promise<StartRunReply> {
  const { db, caller, body, world } = input
  // A wake of a deleted agent is answered, not refused, so deleted agents are looked up here, too.
  const agent = await lookUpAgent(db, caller, input.params.agentId)
  if (agent === null) return unknownAgent(input.params.agentId)
  const task = body.taskId === undefined ? null : await lookUpTask(db, caller, body.taskId)
  if (task === null && body.taskId !== undefined) fail('task_not_found', { param: 'taskId' })
  const key = body.idempotencyKey
  if (key === undefined) return wake(input, { agent, task, deps })
  const now = world.now()
  if (!(await claimWakeKey(db, { agentRef: agent.id, key, now, expiresAt: now + keptMs }))) {
    const first = await findWakeAnswer(db, agent.id, key)
    // Taken by a transaction that was rolled back since: the caller's next try gets it.
    return first === null || first === '' ? fail('transient_conflict') : startRunReply.parse(JSON.parse(first))
  }
  const reply = await wake(input, { agent, task, deps })
  await replaceWakeAnswer(db, { agentRef: agent.id, key, answer: JSON.stringify(reply) })
  return reply
}

async function wake(
  input: Start,
  { agent: found, task, deps }: { agent: AgentRow; task: TaskRow | null; deps: Dependencies },
) {
  const { db, caller, body, world } = input
  const agent = await acceptAgent(db, found, { caller, world })
  const overrides = overridesOf(body, { agent, catalog: deps.catalog })
  const askedBy = await causeOfCaller(db, caller)
  const answer = await startRun(
    db,
    {
      ...asked(
        body.source === 'on_demand' ? onDemand(caller) : body.source,
        { caller: askedBy },
        task === null ? [] : authorsOf(task),
      ),
      agent,
      requestedByRef: publicIdOf(caller),
      prompt: await promptOf(db, { task, prompt: body.prompt, askedBy }),
      task,
      parent: null,
      overrides,
    },
    deps.wakeContext,
  )
  if (body.outputSchemas !== undefined && answer.kind !== 'not_dispatched')
    await addOutputSchemas(db, answer.runId, body.outputSchemas)
  return toReply(answer)
}

/** The choices for this run alone. They are checked as those of a task, and decide no program. */
function overridesOf(
  body: Start['body'],
  { agent, catalog }: { agent: AgentRow; catalog: ModelCatalog },
): RunOverrides {
  const [model, reasoningEffort, harness] = [body.model ?? null, body.reasoningEffort ?? null, body.harness ?? null]
  checkRunSettings({ modelId: model, harness, reasoningEffort }, catalog, 'model')
  const isCommand = (name: HarnessName | null) => name !== null && harnesses[name].runsOwnCommand
  if (harness !== null && isCommand(harness) !== isCommand(agent.harness))
    fail('validation_error', {
      param: 'harness',
      message: isCommand(harness)
        ? `${agent.name} runs no command; only its settings can give it one.`
        : `${agent.name} runs a command; only its settings can make it run ${harness} instead.`,
    })
  return { model, reasoningEffort, harness }
}

/** The person's words, about the task when one is named. */
async function promptOf(
  db: Db,
  { task, prompt, askedBy }: { task: TaskRow | null; prompt: string | undefined; askedBy: Person },
): Promise<string | null> {
  if (task === null) return prompt ?? null
  const reason = prompt ?? 'You were woken to work on this task.'
  return taskPrompt(task, { reason, authorOf: await loadAuthors(db, [task]), askedBy })
}

const onDemand = (caller: Caller) => (caller.kind === 'person' ? 'manual' : 'agent_request')

function toReply(answer: WakeAnswer): StartRunReply {
  switch (answer.kind) {
    case 'queued':
      return { kind: 'queued', runPublicId: answer.runId }
    case 'pending':
      return { kind: 'pending', runPublicId: answer.runId, gateReason: answer.gateReason }
    case 'coalesced':
      return { kind: 'coalesced', coalescedIntoRunPublicId: answer.runId }
    case 'declined':
      return { kind: 'declined', runPublicId: answer.runId, exitReason: answer.exitReason as ExitReason }
    default: {
      const { reason, message, blockedBy, code } = answer
      if (code !== undefined) fail(code, { message })
      return { kind: 'not_dispatched', reason, message, ...(blockedBy && { blockedBy }) }
    }
  }
}
