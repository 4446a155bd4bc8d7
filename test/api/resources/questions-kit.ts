import { expect } from 'vitest'
import { outcomeOf } from '../../kit/server.ts'
import { agentCalls, type AgentScene } from './agent-calls-kit.ts'

export const secretsKey = { SVC_SECRETS_KEY: 'ab'.repeat(32) }

export const options = [
  { key: 'eu', label: 'Europe' },
  { key: 'us', label: 'America' },
]

export const secretRequest = () => ({
  name: `key-${crypto.randomUUID()}`,
  provider: 'github',
  envVarName: 'DEPLOY_KEY',
  reason: 'To push the tag',
})

/** Returns what tests of questions do beside what those of all gates do. */
export function questionCalls(scene: () => AgentScene) {
  const calls = agentCalls(scene)

  const ask = (token: string, body: Record<string, unknown> = {}) =>
    calls.post('/questions', { prompt: 'Which one?', ...body }, token)

  async function asked(body: Record<string, unknown> = {}, run: Record<string, unknown> = {}) {
    const caller = await calls.agentCaller({}, { run })
    const reply = await ask(caller.token, body)
    expect(outcomeOf(reply)).toBe('201')
    return { ...caller, question: reply.body.question, id: reply.body.question.id as string }
  }

  const answer = (id: string, given: Record<string, unknown>, token?: string) =>
    calls.post(`/questions/${id}/answer`, { answer: given }, token)

  return { ...calls, ask, asked, answer }
}
