import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { waitFor } from '../../kit/programs.ts'
import { servedBy } from '../../kit/real-harness.ts'
import type { HarnessDriver } from './drivers.ts'
import {
  asked,
  dataOf,
  ended,
  newAgent,
  plays,
  requestsOf,
  says,
  successorOf,
  withTools,
  type Stage,
  type StagedAgent,
} from './stage.ts'

/** Adds the rest of the table of cases, which takes minutes, so a usual run of the tests leaves it out. */
export function longCases(stageOf: () => Stage, driver: HarnessDriver): void {
  permissionCases(stageOf, driver)
  sessionCases(stageOf, driver)
  limitCases(stageOf, driver)
  deathCases(stageOf, driver)
}

const begun = ({ folder }: StagedAgent) =>
  waitFor(() => existsSync(join(folder, 'begun')), 'the tool runs', { ms: 90_000 })

function permissionCases(stageOf: () => Stage, { shell, say, sayAgainWhen }: HarnessDriver): void {
  describe('permissions', () => {
    test('a call that is denied is not made, the model reads why, and a run of nothing else is no success', async () => {
      const stage = stageOf()
      const agent = await newAgent(stage, 'Denied', withTools({ deny: ['Bash'] }))
      await says(stage, [{ text: 'I try.', tool: shell('touch made.txt') }, { text: 'I may not.' }])
      const { run, events } = await plays(stage, agent, { exitReason: 'error' })
      expect(run.errorMessage).toContain('denied by its permissions')
      expect(dataOf(events, 'permission')).toMatchObject([{ name: 'Bash', decision: 'deny', rule: 'Bash' }])
      expect(dataOf(events, 'tool_result')).toMatchObject([{ isError: true }])
      expect(existsSync(join(agent.folder, 'made.txt'))).toBe(false)
      expect((await asked(stage)).at(-1)).toMatch(/denied|rejected|declined|not allowed/i)
    })

    test('a call that was approved for always is not asked again', async () => {
      const stage = stageOf()
      const agent = await newAgent(stage, 'Always', withTools({ ask: ['Bash'] }))
      const call = shell('mkdir made')
      await says(stage, [{ tool: call }, { text: 'Not reached.' }])
      const first = await plays(stage, agent, { exitReason: 'approval_requested' })
      const { data } = await stage.api.call<{ data: { id: string; runId: string }[] }>('GET', '/approvals')
      const approval = data.find(({ runId }) => runId === first.run.id)
      await says(stage, [{ tool: call }, { text: 'Made.' }])
      await stage.api.insist(`/approvals/${approval!.id}/approve`, { appliedScope: 'always' })
      await ended(stage, await successorOf(stage, first.run.id), 'completed')
      expect(existsSync(join(agent.folder, 'made'))).toBe(true)
      rmdirSync(join(agent.folder, 'made'))
      await says(stage, [{ tool: call }, { text: 'Made again.' }])
      const again = await plays(stage, agent, {})
      expect(dataOf(again.events, 'permission')).toMatchObject([{ decision: 'allow', rule: 'Bash(mkdir made)' }])
      expect(existsSync(join(agent.folder, 'made'))).toBe(true)
    })

    test("a tool of the workspace's MCP server is judged by its name, and called", async () => {
      const stage = stageOf()
      const { id: workspaceId } = await stage.api.call<{ id: string }>('GET', '/workspaces')
      const setServers = (mcpServers: unknown) => stage.api.call('PATCH', `/workspaces/${workspaceId}`, { mcpServers })
      await setServers(servedBy('HOME'))
      const agent = await newAgent(stage, 'Served', withTools({ defaultMode: 'ask', allow: ['mcp__files__*'] }))
      const rules = sayAgainWhen === null ? [] : [{ when: sayAgainWhen, tool: say('hey') }]
      await says(stage, [{ tool: say('hey') }, { text: 'Said.' }], { rules })
      const { events } = await plays(stage, agent, {})
      await setServers(null)
      const allowed = dataOf(events, 'permission').filter(({ decision }) => decision === 'allow')
      expect(allowed).toMatchObject([{ name: 'mcp__files__say', rule: 'mcp__files__*' }])
      const results = dataOf(events, 'tool_result').filter(({ isError }) => isError === false)
      expect(results).toMatchObject([{ output: expect.stringContaining('said hey with ') }])
    })
  })
}

function sessionCases(stageOf: () => Stage, { shell, skills, keepsInstructions }: HarnessDriver): void {
  describe('sessions', () => {
    test("a skill of the person's is offered to the model, also where lists have a say", async () => {
      const stage = stageOf()
      const folder = join(stage.device.homeDir, skills, 'knots')
      mkdirSync(folder, { recursive: true })
      const head = ['---', 'name: knots', 'description: Ties a bowline for the harbour.', '---']
      writeFileSync(join(folder, 'SKILL.md'), [...head, 'Make a loop first.', ''].join('\n'))
      const agent = await newAgent(stage, 'Skilled', withTools({ deny: ['Bash(rm:*)'] }))
      await says(stage, [{ text: 'I know of it.' }])
      await plays(stage, agent, {})
      expect((await asked(stage)).join('')).toContain('Ties a bowline for the harbour.')
    })

    test('a question stops the run; its answer wakes one that goes on with the session', async () => {
      const stage = stageOf()
      const agent = await newAgent(stage, 'Asker')
      await says(stage, [{ text: 'I ask.', tool: shell('svc question ask "Which colour?"') }, { hang: true }])
      const first = await plays(stage, agent, { exitReason: 'question_asked' })
      const { data } = await stage.api.call<{ data: { id: string; runId: string }[] }>('GET', '/questions')
      const question = data.find(({ runId }) => runId === first.run.id)
      await says(stage, [{ text: 'Blue it is.' }])
      await stage.api.insist(`/questions/${question!.id}/answer`, { answer: { text: 'blue, please', selected: null } })
      const after = await ended(stage, await successorOf(stage, first.run.id), 'completed')
      expect(dataOf(after.events, 'session')).toMatchObject([{ sessionId: first.sessionId, resumed: true }])
      const [request] = await asked(stage)
      for (const text of ['I ask.', 'blue, please']) expect(request).toContain(text)
    })

    test('cancelled in the middle of an answer and retried: the new run goes on with the session', async () => {
      const stage = stageOf()
      const agent = await newAgent(stage, 'Retried')
      await says(stage, [{ text: 'One moment.', tool: shell('true') }, { hang: true }])
      const runId = await stage.api.startRun(agent.id, 'Think for long.')
      await waitFor(
        async () => dataOf(await stage.api.events(runId), 'tool_result').length > 0,
        'the program waits for the model',
      )
      await stage.api.cancel(runId)
      const first = await ended(stage, runId, 'interrupted')
      await says(stage, [{ text: 'Done after all.' }])
      const after = await ended(stage, await stage.api.retry(runId), 'completed')
      expect(dataOf(after.events, 'session')).toMatchObject([{ sessionId: first.sessionId, resumed: true }])
      expect(dataOf(after.events, 'result')).toMatchObject([{ text: 'Done after all.' }])
      expect((await asked(stage)).at(-1)).toContain('One moment.')
    })

    test('the next run of a task goes on with its session; a changed AGENT.md holds in it', async () => {
      const stage = stageOf()
      const agent = await newAgent(stage, 'Rememberer', { identityMd: 'You are Ada of the harbour.' })
      await says(stage, [{ text: 'My word is heron.' }])
      const assignee = { type: 'agent', id: agent.id }
      const { id: taskId } = await stage.api.insist<{ id: string }>('/tasks', { title: 'Remember', assignee })
      const runsOf = async () => (await stage.api.call<{ data: { id: string }[] }>('GET', `/runs?task=${taskId}`)).data
      const runId = await waitFor(async () => (await runsOf())[0]?.id, 'the assignment wakes a run')
      const first = await ended(stage, runId, 'completed')
      await says(stage, [{ text: 'It was heron.' }])
      const second = await plays(stage, agent, { taskId, prompt: 'Which word was it?' })
      expect(dataOf(second.events, 'session')).toMatchObject([{ sessionId: first.sessionId, resumed: true }])
      expect((await asked(stage))[0]).toContain('My word is heron.')

      await stage.api.call('PUT', `/agents/${agent.id}/identity/agent-md`, { agentMd: 'You are Bob of the hills.' })
      await says(stage, [{ text: 'Bob, then.' }])
      const third = await plays(stage, agent, { taskId, prompt: 'Who are you?' })
      const [request] = await asked(stage)
      expect(request).toContain('You are Bob of the hills.')
      expect(request).not.toContain('You are Ada of the harbour.')
      const isSame = dataOf(third.events, 'session')[0]?.['sessionId'] === first.sessionId
      expect(isSame).toBe(!keepsInstructions)
    })
  })
}

function limitCases(stageOf: () => Stage, { models, backupBy, limit, shell, signedOut }: HarnessDriver): void {
  describe('limits and providers', () => {
    test('past its limit of turns it is stopped', async () => {
      const stage = stageOf()
      const agent = await newAgent(stage, 'Turner', { config: { runtime: { maxTurns: 2 } } })
      await says(stage, [{ tool: shell('echo again') }], { loop: true })
      const { run } = await plays(stage, agent, { exitReason: 'budget_exceeded' })
      expect(run.errorMessage).toContain('2')
      expect(run.toolCallCount).toBeLessThanOrEqual(3)
    })

    test.runIf(models !== null)('an overloaded provider: the backup model finishes what was begun', async () => {
      const stage = stageOf()
      const { model, backupModel } = models!
      const agent = await newAgent(stage, 'Backed', { config: { runtime: { model, backupModel } } })
      const half = { text: 'Half.', tool: shell('echo half >> done.txt') }
      const failures = Array.from({ length: 20 }, () => ({ error: { status: 529, retryAfter: 0 } }))
      const last = backupModel.split('/').at(-1)!
      // Whichever model is asked by another name than the first has an answer.
      await stage.stub.script({
        [stage.driver.program]: { steps: [half, ...failures], models: { [last]: { text: 'All of it is done.' } } },
      })
      const runId = await stage.api.startRun(agent.id, 'Do it all.')
      if (backupBy === 'itself') await ended(stage, runId, 'completed')
      else {
        const first = await ended(stage, runId, 'error')
        const after = await ended(stage, await successorOf(stage, runId), 'completed')
        expect(dataOf(after.events, 'session')).toMatchObject([{ sessionId: first.sessionId, resumed: true }])
      }
      const used = (await requestsOf(stage)).map(({ body }) => String(body['model']))
      expect([used[0], used.at(-1)]).toEqual([model.split('/').at(-1), last])
      expect(readFileSync(join(agent.folder, 'done.txt'), 'utf8')).toBe('half\n')
    })

    test.runIf(limit !== null)(
      'a limit with a time: one run follows, waits for it, and goes on with the session by itself',
      { timeout: 300_000 },
      async () => {
        const stage = stageOf()
        const agent = await newAgent(stage, 'Limited')
        const resetsAt = Math.ceil(Date.now() / 1000) + limit!.seconds
        const half = { text: 'Half.', tool: shell('echo half >> done.txt') }
        await says(stage, [half, ...Array.from({ length: 10 }, () => ({ error: limit!.error(resetsAt) }))])
        const first = await plays(stage, agent, { prompt: 'Do it all.', exitReason: 'rate_limited' })
        const successor = await successorOf(stage, first.run.id)
        const limits = async () => (await stage.device.status()).limits
        const [told] = await waitFor(async () => {
          const rows = await limits()
          return rows?.length ? rows : null
        }, 'the device is told of the limit')
        // Some providers name a span of time, which begins with their answer.
        const opensAt = told!.resetsAt
        expect(opensAt - resetsAt * 1000).toBeGreaterThanOrEqual(0)
        expect(opensAt - resetsAt * 1000).toBeLessThan(60_000)
        expect(await stage.api.run(successor)).toMatchObject({
          gateReason: 'rate_limit',
          gateDescription: expect.stringContaining(new Date(opensAt).toISOString()),
        })
        await says(stage, [{ text: 'All of it is done.' }])
        const done = await ended(stage, successor, 'completed')
        expect(done.run).toMatchObject({ triggerSource: 'manual', parentRunId: first.run.id })
        expect(Date.parse(done.run.startedAt!)).toBeGreaterThanOrEqual(opensAt)
        expect(Date.parse(done.run.startedAt!) - opensAt).toBeLessThan(5_000)
        expect(dataOf(done.events, 'session')).toMatchObject([{ sessionId: first.sessionId, resumed: true }])
        expect(readFileSync(join(agent.folder, 'done.txt'), 'utf8')).toBe('half\n')
        expect(await limits()).toEqual([])
      },
    )

    test('without a sign-in the run waits, or fails to start, and says what to do', async () => {
      const stage = stageOf()
      const { system, api, binDir, modelUrl } = stage
      const device = system.makeDevice()
      stage.driver.installSignedOut(device.homeDir, { binDir, modelUrl })
      await device.enrol(api, system.server.url)
      await device.start()
      const agent = await newAgent(stage, 'Stranger', { device })
      if ('fails' in signedOut) {
        await says(stage, [{ error: { status: 401, message: 'no such key' } }], { loop: true })
        const runId = await api.startRun(agent.id, 'Do it.')
        const { run } = await ended(stage, runId, signedOut.fails)
        expect(run.errorMessage).toMatch(signedOut.message)
      } else {
        const isTold = async () => {
          const found = (await api.devices()).find(({ publicId }) => publicId === device.identity.publicId)
          const { providerReadiness: told } = found!
          return 'harnesses' in told && told.harnesses[stage.driver.harness]?.signedIn === false
        }
        await waitFor(isTold, 'the device tells that nobody has signed in')
        const runId = await api.startRun(agent.id, 'Do it.')
        const waiting = await waitFor(async () => {
          const run = await api.run(runId)
          return run.gateReason === null ? null : run
        }, 'the run waits')
        expect(waiting.gateReason).toBe('pinned_route_not_ready')
        expect(waiting.gateDescription).toMatch(signedOut.waits)
        await api.cancel(runId)
      }
      await device.end()
    })
  })
}

function deathCases(stageOf: () => Stage, { shell, asksBeforeRequests }: HarnessDriver): void {
  describe('deaths in a tool call', () => {
    const wait = 'touch begun; until [ -e go ]; do sleep 0.1; done; echo went > went.txt'

    test('of the harness: an error, and nothing of the run lives', async () => {
      const stage = stageOf()
      const agent = await newAgent(stage, 'Killed')
      await says(stage, [{ tool: shell('touch begun; (setsid sleep 600 &) ; tail -f /dev/null') }])
      const runId = await stage.api.startRun(agent.id)
      await begun(agent)
      const { harness } = await stage.device.hostOf(runId)
      process.kill(-harness!.pid, 'SIGKILL')
      await ended(stage, runId, 'error')
    })

    test('of the run host: crashed, and nothing of the run lives', async () => {
      const stage = stageOf()
      const agent = await newAgent(stage, 'Orphaned')
      await says(stage, [{ tool: shell('touch begun; (setsid sleep 600 &) ; tail -f /dev/null') }])
      const runId = await stage.api.startRun(agent.id)
      await begun(agent)
      process.kill((await stage.device.hostOf(runId)).pid, 'SIGKILL')
      await ended(stage, runId, 'crashed')
    })

    test('of the run host that answers no more: the next call, which it had to allow, is never made', async () => {
      const stage = stageOf()
      const agent = await newAgent(stage, 'Unanswered')
      await says(stage, [{ tool: shell(wait) }, { tool: shell('touch unanswered.txt') }, { text: 'Not reached.' }])
      const runId = await stage.api.startRun(agent.id)
      await begun(agent)
      const { pid } = await stage.device.hostOf(runId)
      process.kill(pid, 'SIGSTOP')
      try {
        const before = (await asked(stage)).length
        writeFileSync(join(agent.folder, 'go'), '')
        const isOrdered = async () => (await asked(stage)).length > before
        const isDone = () => existsSync(join(agent.folder, 'went.txt'))
        await waitFor(asksBeforeRequests ? isDone : isOrdered, 'the next call is to come', { ms: 90_000 })
      } finally {
        process.kill(pid, 'SIGKILL')
      }
      await ended(stage, runId, 'crashed')
      expect(existsSync(join(agent.folder, 'went.txt'))).toBe(true)
      expect(existsSync(join(agent.folder, 'unanswered.txt'))).toBe(false)
    })

    test('of the daemon: the next one takes the run over, which completes', async () => {
      const stage = stageOf()
      const agent = await newAgent(stage, 'Adopted')
      await says(stage, [{ text: 'I wait.', tool: shell(wait) }, { text: 'It went.' }])
      const runId = await stage.api.startRun(agent.id)
      await begun(agent)
      await stage.device.kill9()
      await stage.device.start()
      writeFileSync(join(agent.folder, 'go'), '')
      const { events } = await ended(stage, runId, 'completed')
      expect(dataOf(events, 'result')).toMatchObject([{ text: 'It went.' }])
      expect(readFileSync(join(agent.folder, 'went.txt'), 'utf8')).toBe('went\n')
    })
  })
}
