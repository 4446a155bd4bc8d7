import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandCall } from '../../../shared/permissions/command-call.ts'
import type { CommandResult } from '../../../shared/runs/events.ts'
import { FakeDevice, type FakeRun } from '../../kit/fake-device.ts'
import { hasPostgres } from '../../kit/database.ts'
import { databasesFor } from '../../kit/forms.ts'
import { outcomeOf, TestServer, type Person } from '../../kit/server.ts'
import { digestOf } from '../resources/approvals-kit.ts'
import { makeWorkflow, readFlow, settled, startFlow } from '../resources/workflows-kit.ts'

const day = 24 * 60 * 60_000
const key = () => ({ 'idempotency-key': crypto.randomUUID() })

/** Gate steps, with a device that answers as the test says; workflow-deaths.test.ts has one on PostgreSQL in the short form. */
for (const database of databasesFor('sqlite'))
  describe.skipIf(database === 'postgres' && !hasPostgres())(`on ${database}`, () => {
    let server: TestServer
    let device: FakeDevice
    let member: Person
    let agent: string
    let agentId: string
    beforeAll(async () => {
      server = await TestServer.start({ database })
      device = await FakeDevice.connect(server)
      member = await server.addPerson('member')
      const made = await server.createAgent({ name: 'Worker', harness: 'claude', agentMd: 'Be brief.', model: 'opus' })
      agent = made.handle as string
      agentId = made.id as string
    })
    afterAll(async () => {
      await device.disconnect()
      await server.stop()
    })

    const ended = async (run: FakeRun, text: string, gate: Partial<CommandResult> & Pick<CommandResult, 'ranArgv'>) => {
      const data = { exitCode: 0, cwd: '/w', ...gate }
      await run.events({ kind: 'result', data: { text, isError: data.exitCode !== 0, gate: data } })
    }
    const asks = async (run: FakeRun) => {
      const call = commandCall(run.spec.gate!)
      const ask = {
        inputDigest: digestOf(call.name, call.input),
        safeSummary: 'Bash: make',
        toolArgs: call.input,
        prompt: 'May it run make?',
      }
      await run.events({ kind: 'permission', data: { name: call.name, decision: 'ask', ask } })
    }
    const asking = async (run: FakeRun) => {
      await asks(run)
      await run.end('approval_requested')
    }
    const flow = async (body: string, { mode = 'full', token }: { mode?: string; token?: string } = {}) => {
      const meta = { toolPermissionMode: mode }
      return makeWorkflow(server, body, token === undefined ? { meta } : { meta, token })
    }
    const pendingOf = async (id: string) => (await readFlow(server, id)).steps.at(-1).pendingApproval.id as string

    it('a command is a run of the agent without its model, and its exit status a value', async () => {
      const name = await flow(
        `phase('Test')
         const made = await gate(['make', '-s', 'all things'], { label: 'make', agent: '${agent}', cwd: 'sub', timeoutSeconds: 30 })
         return made`,
      )
      const id = await startFlow(server, name)
      const run = await device.take()
      const { spec } = run
      expect(spec).toMatchObject({
        harness: 'command',
        command: null,
        gate: { argv: ['make', '-s', 'all things'], cwd: 'sub', needsRule: false },
        prompt: "Gate: make -s 'all things'",
        agentMd: '',
        model: null,
        resumeSessionId: null,
        mcpServers: {},
        permissions: { defaultMode: 'full' },
      })
      expect(spec.limits.runMs).toBe(30_000)
      expect(spec.limits.noProgressMs).toBeGreaterThan(30_000)
      expect(await server.ok(`/runs/${run.runId}`)).toMatchObject({
        triggerSource: 'workflow_step',
        harness: { id: 'command' },
      })
      await settled(server)
      const asked = { argv: ['make', '-s', 'all things'], exitCode: null, output: null, cwd: null, ranArgv: null }
      expect((await readFlow(server, id)).steps).toMatchObject([{ label: 'make', phase: 'Test', gate: asked }])
      await ended(run, 'no rule\n', { ranArgv: spec.gate!.argv, exitCode: 2, cwd: '/w/su\0b' })
      await run.end('completed')
      await settled(server)
      const done = await readFlow(server, id)
      expect(done).toMatchObject({
        status: 'completed',
        steps: [
          {
            state: 'done',
            gate: { ...asked, exitCode: 2, output: 'no rule\n', cwd: '/w/su\ufffdb', ranArgv: asked.argv },
          },
        ],
      })
      expect(JSON.parse(done.summary)).toEqual({
        exitCode: 2,
        output: 'no rule\n',
        ranArgv: ['make', '-s', 'all things'],
        timedOut: false,
      })
      // Who does not see the agent sees what the program asked for, and not what came of it.
      await server.ok(`/agents/${agentId}`, { method: 'PATCH', body: { visibility: 'private' } })
      expect((await server.ok(`/workflows/runs/${id}`, { token: member.token })).steps).toMatchObject([
        { agent: null, run: null, gate: asked },
      ])
      await server.ok(`/agents/${agentId}`, { method: 'PATCH', body: { visibility: 'company' } })
    })

    it('one that takes too long is a value, one that is not started an error with a code of its own', async () => {
      const on = `{ agent: '${agent}' }`
      const name = await flow(
        `const slow = await gate(['sleep', '9'], ${on})
         const codes = []
         for (const n of [1, 2, 3, 4]) await gate(['step', String(n)], ${on}).catch((e) => codes.push(e.name + ' ' + e.code))
         return [slow, codes]`,
      )
      const id = await startFlow(server, name)
      const slow = await device.take()
      await ended(slow, 'still', { ranArgv: ['sleep', '9'], exitCode: null })
      await slow.end('timeout')
      for (const refused of ['denied', 'cwd_outside', 'cwd_missing'] as const) {
        const run = await device.take()
        await ended(run, '', { ranArgv: null, exitCode: null, cwd: null, refused })
        await run.end('error', { message: 'It may not.' })
      }
      const last = await device.take()
      await last.end('harness_start_failed', { message: 'No shell.' })
      await settled(server)
      // Its program has gone on: to run the command once more would be nobody's step.
      const retried = await server.call(`/runs/${last.runId}/retry`, { body: {} })
      expect([retried.status, retried.body.error.code]).toEqual([409, 'run.not_retriable'])
      expect(JSON.parse((await readFlow(server, id)).summary)).toEqual([
        { exitCode: null, output: 'still', ranArgv: ['sleep', '9'], timedOut: true },
        [
          'StepError gate_denied',
          'StepError gate_cwd_outside',
          'StepError gate_cwd_missing',
          'StepError harness_start_failed',
        ],
      ])
    })

    it('arguments that are none are refused where the program calls', async () => {
      const calls = [
        'gate([])',
        "gate([''])",
        "gate(['a\\u0000'])",
        "gate('ls')",
        "gate(['x'.repeat(20000)])",
        "gate(['ls'], { timeoutSeconds: 3601 })",
        "gate(['ls'], { timeoutSeconds: 0.5 })",
        "gate(['ls'], { cwd: '' })",
        "gate(['ls'], { shell: true })",
        "gate(['ls'], { task: 'tsk_1' })",
      ]
      const name = await flow(
        `const errors = []
         for (const call of [${calls.map((call) => `() => ${call}`).join(', ')}])
           await call().catch((error) => errors.push(error.name))
         return errors.join()`,
      )
      const id = await startFlow(server, name)
      await settled(server)
      expect((await readFlow(server, id)).summary).toBe(calls.map(() => 'TypeError').join())
    })

    it('a person is asked once, approves, and this command starts; the step goes on with that run', async () => {
      const name = await flow(`return (await gate(['make'], { agent: '${agent}' })).exitCode`, { mode: 'ask' })
      const id = await startFlow(server, name)
      const first = await device.take()
      expect(first.spec.permissions.defaultMode).toBe('ask')
      await asking(first)
      await settled(server)
      expect((await readFlow(server, id)).steps).toMatchObject([{ state: 'dispatched' }])
      const approval = await pendingOf(id)
      expect(outcomeOf(await server.call(`/approvals/${approval}/approve`, { body: {}, headers: key() }))).toBe('200')
      const second = await device.take()
      expect(second.spec).toMatchObject({
        harness: 'command',
        gate: first.spec.gate,
        prompt: 'Gate: make',
        allowCalls: [
          { name: 'Bash', approvalId: approval, inputDigest: digestOf('Bash', commandCall(first.spec.gate!).input) },
        ],
      })
      expect(second.spec.limits.runMs).toBe(600_000)
      await ended(second, '', { ranArgv: ['make'] })
      await second.end('completed')
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: '0' })
    })

    it('one that was approved and cannot start says why, and not that nobody approved it', async () => {
      const gone = await server.createAgent({ name: 'Ends early', harness: 'claude' })
      const id = await startFlow(
        server,
        await flow(`try { await gate(['make'], { agent: '${gone.handle}' }) } catch (e) { return e.code }`, {
          mode: 'ask',
        }),
      )
      await asking(await device.take())
      await settled(server)
      await server.ok(`/agents/${gone.id}`, { method: 'PATCH', body: { status: 'terminated' } })
      const approval = await pendingOf(id)
      expect(outcomeOf(await server.call(`/approvals/${approval}/approve`, { body: {}, headers: key() }))).toBe('200')
      await server.plane.waker.sweep()
      await server.plane.sweeper.runAll()
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({ status: 'completed', summary: 'agent_inactive' })
    })

    it('a call that the agent of a step asks about is approved, and the run that makes it is the step', async () => {
      const id = await startFlow(server, await flow(`return await agent('Ship it', { agent: '${agent}' })`))
      const first = await device.take()
      await first.events({ kind: 'session', data: { sessionId: 'ses-ship' } })
      const toolArgs = { command: 'npm publish' }
      const inputDigest = digestOf('Bash', toolArgs)
      const ask = { inputDigest, safeSummary: 'Bash: npm publish', toolArgs, prompt: 'May it publish?' }
      await first.events({ kind: 'permission', data: { name: 'Bash', decision: 'ask', ask } })
      await first.end('approval_requested', { sessionId: 'ses-ship' })
      await settled(server)
      expect((await readFlow(server, id)).steps).toMatchObject([
        { state: 'dispatched', run: { id: first.runId, exitReason: 'approval_requested' } },
      ])
      const approval = await pendingOf(id)
      expect(outcomeOf(await server.call(`/approvals/${approval}/approve`, { body: {}, headers: key() }))).toBe('200')
      const second = await device.take()
      expect(second.spec).toMatchObject({
        resumeSessionId: 'ses-ship',
        allowCalls: [{ name: 'Bash', approvalId: approval, inputDigest }],
      })
      await second.events({ kind: 'result', data: { text: 'Shipped.', isError: false } })
      await second.end('completed', { sessionId: 'ses-ship' })
      await settled(server)
      expect(await readFlow(server, id)).toMatchObject({
        status: 'completed',
        summary: 'Shipped.',
        steps: [{ stepOrdinal: 0, state: 'done', run: { id: second.runId } }],
      })
    })

    describe('who decides what runs', () => {
      const gateOf = async (name: string, token?: string) => {
        const id = await startFlow(server, name, {}, token)
        const run = await device.take()
        await ended(run, '', { ranArgv: ['make'] })
        await run.end('completed')
        await settled(server)
        expect((await readFlow(server, id)).status).toBe('completed')
        return run.spec.gate
      }
      const body = (ref: string) => `await gate(['make'], { agent: '${ref}' })`

      it('a program of the owner that the owner starts needs no rule; a word of a member, an agent or one who left does', async () => {
        const own = await flow(body(agent))
        expect(await gateOf(own)).toMatchObject({ needsRule: false })
        expect(await gateOf(own, member.token)).toMatchObject({ needsRule: true })
        const theirs = await flow(body(agent), { token: member.token })
        expect(await gateOf(theirs)).toMatchObject({ needsRule: true })
        const caller = await server.agentCaller({ name: 'Author' }, { run: { prompt: 'x' } })
        await (await device.take()).end('completed')
        const work = await server.startRun(caller.agent.id)
        const working = await device.take()
        expect(working.runId).toBe(work)
        const byAgent = await flow(body(agent), { token: working.token })
        await working.end('completed')
        expect(await gateOf(byAgent)).toMatchObject({ needsRule: true })
        // A change makes it the word of whoever changed it.
        const source = `export const meta = { name: '${theirs}', title: 'Flow', toolPermissionMode: 'full' }\n${body(agent)}`
        await server.ok(`/workflows/records/${theirs}`, { method: 'PATCH', body: { source } })
        expect(await gateOf(theirs)).toMatchObject({ needsRule: false })
        const leaver = await server.addPerson('admin')
        const left = await flow(body(agent), { token: leaver.token })
        expect(await gateOf(left)).toMatchObject({ needsRule: false })
        await server.ok(`/workspaces/${leaver.workspaceId}/leave`, { method: 'POST', token: leaver.token })
        expect(await gateOf(left)).toMatchObject({ needsRule: true })
      })

      it("a member's own agent runs what its owner's programs say", async () => {
        const mine = await server.createAgent({ name: 'Mine', harness: 'claude' }, member.token)
        const name = await flow(body(mine.handle), { token: member.token })
        const memberDevice = await FakeDevice.connect(server, { token: member.token })
        const id = await startFlow(server, name, {}, member.token)
        const run = await memberDevice.take()
        expect(run.spec.gate).toMatchObject({ needsRule: false })
        await run.end('completed')
        await memberDevice.disconnect()
        await settled(server)
        // Its result was lost.
        expect(await readFlow(server, id)).toMatchObject({ status: 'failed', error: { line: 2 } })
      })

      it('a command agent has no rules, so nothing of others starts on it', async () => {
        const program = await server.createAgent({ name: 'Program', harness: 'command', command: 'true' })
        const name = await flow(body(program.handle), { token: member.token })
        const id = await startFlow(server, name, {}, member.token)
        await settled(server)
        expect(await readFlow(server, id)).toMatchObject({
          status: 'failed',
          summary: expect.stringContaining('Only the owner of @program and workspace admins'),
          steps: [{ run: null, state: 'done' }],
        })
        expect(await gateOf(await flow(body(program.handle)))).toMatchObject({ needsRule: false })
      })
    })

    it('a page of runs holds as much as their journals allow, and the next one the rest', async () => {
      const name = await flow(
        `await parallel(Array.from({ length: 50 }, () => () => agent('x'.repeat(100000), { agent: '@nobody' })))`,
      )
      const ids = [await startFlow(server, name), await startFlow(server, name)]
      await settled(server)
      const first = await server.ok(`/workflows/runs?workflow=${name}&limit=10`)
      expect(first.data.map(({ id }: { id: string }) => id)).toEqual([ids[1]])
      expect(first.hasMore).toBe(true)
      const next = await server.ok(`/workflows/runs?workflow=${name}&limit=10&after=${first.nextCursor}`)
      expect(next.data.map(({ id }: { id: string }) => id)).toEqual([ids[0]])
    })

    // Last, since the device counts as gone when a day has passed.
    it('what a person rejects, and what nobody answers, has failed, and wakes nobody', async () => {
      const name = await flow(
        `const codes = []
         for (const n of [1, 2, 3]) await gate(['make'], { agent: '${agent}' }).catch((e) => codes.push(e.code, e.message))
         return codes`,
        { mode: 'ask' },
      )
      const id = await startFlow(server, name)
      await asking(await device.take())
      const body = { reason: 'Not today.' }
      const reject = async () =>
        outcomeOf(await server.call(`/approvals/${await pendingOf(id)}/reject`, { body, headers: key() }))
      expect(await reject()).toBe('200')
      // Before its run has ended.
      const second = await device.take()
      await asks(second)
      expect(await reject()).toBe('200')
      await second.end('approval_requested')
      await asking(await device.take())
      server.world.advance(day + 60_000)
      await server.plane.sweeper.runAll()
      await server.plane.sweeper.runAll()
      await settled(server)
      expect(JSON.parse((await readFlow(server, id)).summary)).toEqual([
        'gate_rejected',
        'A person rejected the command. They said: Not today.',
        'gate_rejected',
        'A person rejected the command. They said: Not today.',
        'gate_expired',
        'Nobody approved the command in time.',
      ])
      expect(device.pending.filter((type) => type === 'run.offer')).toEqual([])
    })
  })
