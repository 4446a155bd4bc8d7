import { hasPrefix, type ActorRef, type WorkspaceUuid } from '../../../shared/lib/ids.ts'
import { harnessFactsOf } from '../../../shared/runs/harnesses.ts'
import type { Tx } from '../../db/open.ts'
import type { AgentRow } from '../../resources/agents/store.ts'
import { findRole, findUserByPublicId } from '../../resources/members/store.ts'
import { mayDecideProgram, type CommandAuthor } from '../../resources/workflows/rules.ts'
import type { WorkflowRunRow } from '../../resources/workflows/run-store.ts'
import { startRun } from '../../run/wakes/start-run.ts'
import { commandStepSeconds, type CommandStepArgs } from '../engine/args.ts'
import { askedByStep } from './asked.ts'
import type { StartedStep } from './new-call.ts'
import { failed, refusedWakeOutcome, type StepOutcome } from './outcome.ts'

/**
 * Starts the run of a command step; returns why it cannot be started. The device judges the command before it starts it, by the
 * lists and the mode of the agent. Whoever wrote the program and whoever started it decide together what runs on the device,
 * so without the right of both to do that, only a rule of the agent lets the command start.
 */
export async function startCommandStep(tx: Tx, args: CommandStepArgs, step: StartedStep): Promise<StepOutcome | null> {
  const { agent, workspace, task, run, seq, context } = step
  const speakers = await speakersOf(tx, run)
  const needsRule = !speakers.every((speaker) => mayDecideProgram(speaker, agent))
  if (needsRule && hasNoRules(agent)) return failed({ code: 'gate_denied', message: notTheirs(agent.handle) })
  const { argv, cwd = null, timeoutSeconds } = args
  const answer = await startRun(
    tx,
    {
      ...(await askedByStep(tx, step)),
      agent,
      workspace,
      requestedByRef: run.startedByRef,
      prompt: null,
      parent: null,
      task,
      commandStep: { command: { argv, cwd, needsRule }, timeoutMs: (timeoutSeconds ?? commandStepSeconds) * 1_000 },
      overrides: { toolMode: run.toolPermissionMode },
      step: { workflowRunId: run.id, call: seq },
    },
    context,
  )
  return answer.kind === 'not_dispatched' ? refusedWakeOutcome(answer) : null
}

const hasNoRules = ({ harness, protocol }: AgentRow) =>
  harness !== null && !harnessFactsOf({ harness, protocol }).callsTools

const notTheirs = (handle: string) =>
  `Only the owner of @${handle} and workspace admins decide what it runs, and it has no rules that could allow a command: both the author of the workflow and whoever started it must be one of them.`

/** Returns the people by whose word the run's command steps are started. A program that comes with the server is nobody's. */
async function speakersOf(tx: Tx, run: WorkflowRunRow): Promise<CommandAuthor[]> {
  const words = run.workflowId === null ? [run.startedByRef] : [run.writtenByRef, run.startedByRef]
  const speakers: CommandAuthor[] = []
  for (const word of words) speakers.push(await speakerOf(tx, run.workspaceId, word))
  return speakers
}

/** An agent's word decides nothing beyond what its rules allow, whoever is behind it. */
async function speakerOf(tx: Tx, workspaceId: WorkspaceUuid, publicId: ActorRef | null): Promise<CommandAuthor> {
  const user = publicId === null || !hasPrefix(publicId, 'usr_') ? null : await findUserByPublicId(tx, publicId)
  const role = user === null ? null : await findRole(tx, workspaceId, user.id)
  return user === null || role === null ? null : { personUuid: user.id, role }
}
