import type { RunSpec } from '../../../shared/runs/spec.ts'
import { jsonLine } from '../parts/json-lines.ts'
import type { GivenSkill } from '../parts/skills.ts'

/** The ids of our requests. What a person adds has ids from `firstInput` on; reasons of refusals count down from `firstReason`. */
export const codexRequestIds = {
  initialize: 1,
  thread: 2,
  turn: 3,
  interrupt: 4,
  settings: 5,
  skills: 6,
  item: 7,
  deletion: 8,
  firstInput: 10,
  firstReason: -1,
} as const

export function initializeLines(): string {
  const clientInfo = { name: 'svc', title: 'svc', version: '1' }
  const initialize = { id: codexRequestIds.initialize, method: 'initialize', params: { clientInfo } }
  return jsonLine(initialize) + jsonLine({ method: 'initialized' })
}

/** Has codex take these skills, too, each by its own folder: that is where it sends the model. */
export const skillsLine = (skills: readonly GivenSkill[]): string =>
  jsonLine({
    id: codexRequestIds.skills,
    method: 'skills/extraRoots/set',
    params: { extraRoots: skills.map(({ folder }) => folder) },
  })

/** Asks for the settings that hold in a folder. */
export const settingsLine = (cwd: string | undefined): string =>
  jsonLine({
    id: codexRequestIds.settings,
    method: 'config/read',
    params: { includeLayers: false, ...(cwd && { cwd }) },
  })

/** Opens a new thread, or the one that the run goes on with, under the policy by which everything is asked. */
export function threadLine(spec: RunSpec, config: Record<string, unknown>): string {
  const { resumeSessionId, model, agentMd } = spec
  const thread = {
    // Every command, patch and MCP call is asked, and the agent's lists decide. codex's own sandbox would forbid what
    // they allow (the network, `git commit`); the wall around the run is svc's.
    approvalPolicy: 'untrusted',
    sandbox: 'danger-full-access',
    ...(model !== null && { model }),
    ...(agentMd.trim() !== '' && { developerInstructions: agentMd }),
    ...(Object.keys(config).length > 0 && { config }),
  }
  const open =
    resumeSessionId === null
      ? { method: 'thread/start', params: thread }
      : { method: 'thread/resume', params: { threadId: resumeSessionId, excludeTurns: true, ...thread } }
  return jsonLine({ id: codexRequestIds.thread, ...open })
}

/** Starts the turn with the prompt and what a person has added to it. */
export function turnLine({ reasoningEffort }: RunSpec, threadId: string, texts: readonly string[]): string {
  const params = { threadId, input: inputOf(texts), ...(reasoningEffort !== null && { effort: reasoningEffort }) }
  return jsonLine({ id: codexRequestIds.turn, method: 'turn/start', params })
}

/** Adds a person's text to the turn that goes on. */
export function steerLine(id: number, turn: { threadId: string | null; turnId: string | null; text: string }): string {
  const { threadId, turnId: expectedTurnId, text } = turn
  return jsonLine({ id, method: 'turn/steer', params: { threadId, expectedTurnId, input: inputOf([text]) } })
}

export const interruptLine = (threadId: string, turnId: string): string =>
  jsonLine({ id: codexRequestIds.interrupt, method: 'turn/interrupt', params: { threadId, turnId } })

const inputOf = (texts: readonly string[]) => texts.map((text) => ({ type: 'text', text, text_elements: [] }))
