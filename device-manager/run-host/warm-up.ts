import { idFrom, type RunId } from '../../shared/lib/ids.ts'
import { plainHarness } from '../../shared/runs/harnesses.ts'
import type { World } from '../../shared/lib/world.ts'
import { Redactor } from '../../shared/lib/redact.ts'
import { collectGarbage } from '../../shared/lib/v8.ts'
import { commandDialogue } from '../harness/command/dialogue.ts'
import { inputsOf } from '../../shared/permissions/call-inputs.ts'
import { nothingWritten, pendingEvent, toRows } from './output/event-lines.ts'
import { launchHarness, type StartRequest } from './launch/launch.ts'
import { SkillsAhead } from './launch/skills-ahead.ts'
import { messageOf, type HostLog } from '../log/host-log.ts'
import { Pipeline } from './output/pipeline.ts'
import { cleanUp, prepare, type Assignment } from './preparation.ts'
import { Connections } from './mcp-proxy/connections.ts'
import { StandingWall } from './standing-wall.ts'
import { Timeline } from './timeline.ts'
import { hostRequest } from './wire/protocol.ts'
import { hostPaths } from './wire/record.ts'
import { streamRedactor, wholeValues } from './output/redaction.ts'

export interface WarmUpParts {
  world: World
  log: HostLog
  stateDir: string
  hostId: string
}

/**
 * Runs the path from an assignment to the first rows once, with a program that does nothing, while nobody waits: code
 * that ran before is several times faster. Nothing of it is kept.
 */
export async function warmUp({ world, log, stateDir, hostId }: WarmUpParts): Promise<void> {
  try {
    const said = JSON.stringify(assignmentOf(idFrom(`warm_${hostId}`), stateDir))
    for (let round = 1; round < rounds; round++) readRequests(said)
    const { assignment, start } = readRequests(said)
    const own = hostPaths(stateDir, `warm_${hostId}`).own
    const prepared = await prepare(stateDir, assignment, {
      world,
      log,
      wall: new StandingWall(own, world, null),
      ahead: new SkillsAhead(own, world),
      connections: new Connections({ world, ask: () => {} }),
      timeline: new Timeline(world),
      sharedWith: new Set(),
    })
    try {
      if ('problem' in prepared.plan) return
      const pipeline = makePipeline(world)
      const child = launchHarness(
        { prepared, plan: prepared.plan, start, world },
        {
          onOutput: (chunk) => pipeline.output(chunk),
          onStderr: () => {},
        },
      )
      const exit = await child.closed
      pipeline.end({ ...exit, stoppedFor: null })
    } finally {
      await cleanUp(prepared)
    }
  } catch (error) {
    // A run will tell better what is wrong here.
    log('warm_up_failed', { error: messageOf(error) })
  }
  // To launch a program the system copies the tables of all memory of this process, so each megabyte less brings the harness nearer.
  collectGarbage({ isThorough: false })
}

/** A request is read so often that the code for it is compiled. */
const rounds = 10

function readRequests(said: string): { assignment: Assignment; start: StartRequest } {
  const assignment = hostRequest.parse(JSON.parse(said))
  const start = hostRequest.parse({ type: 'start', token: 'none', apiUrl: 'none', secrets: {} })
  if (assignment.type !== 'assign' || start.type !== 'start') throw new Error('the requests of the warm-up are wrong')
  return { assignment, start }
}

function assignmentOf(runId: RunId, homeDir: string): Assignment {
  const long = 600_000
  return {
    type: 'assign',
    fence: 1,
    env: { PATH: '/usr/bin:/bin' },
    homeDir,
    loginShell: '/bin/sh',
    svcBinDir: null,
    harnessVersion: null,
    wall: null,
    spec: {
      runId,
      workspaceId: idFrom('none'),
      agent: { id: idFrom('none'), handle: '@none', name: 'none' },
      harness: plainHarness,
      // The repository in which the state folder may lie is not touched.
      folder: null,
      prompt: 'warm',
      agentMd: '',
      model: null,
      backupModel: null,
      reasoningEffort: null,
      maxTurns: null,
      command: ['sh', '-c', 'echo warm'],
      permissions: { allow: [], ask: [], deny: [], defaultMode: 'full' },
      allowCalls: [],
      mcpServers: Object.fromEntries(['a', 'b', 'c'].map((name) => [name, behindProxy])),
      resumeSessionId: null,
      limits: { runMs: long, noProgressMs: long, firstEventMs: long, toolCalls: 1, silentMs: long },
    },
  }
}

/** A server whose proxy is opened and closed again. */
const behindProxy = { type: 'http', url: 'http://127.0.0.1/', headers: { warm: '${WARM}' } } as const

function makePipeline(world: World): Pipeline {
  const redactor = new Redactor([{ name: 'NONE', value: world.id('warm_') }])
  return new Pipeline({
    world,
    dialogue: commandDialogue(),
    redactor: streamRedactor(redactor),
    redact: wholeValues(redactor),
    isTranscript: true,
    lookUp: async () => ({ inputs: inputsOf({ name: '', input: null }), paths: [] }),
    decide: ({ name }) => ({
      event: { kind: 'permission', data: { name, decision: 'deny' } },
      decision: { behavior: 'deny', message: '' },
    }),
    emit: (bodies) => {
      const events = bodies.map((body) => pendingEvent(world.now(), body))
      toRows(nothingWritten(), events)
    },
    write: () => {},
    closeInput: () => {},
    onFinished: () => {},
    onEndNow: () => {},
  })
}
