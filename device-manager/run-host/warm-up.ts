import { Redactor } from '../../shared/lib/redact.ts'
import type { World } from '../../shared/lib/world.ts'
import { commandSession } from '../harness/command/session.ts'
import { nothingWritten, pendingEvent, toRows } from './event-lines.ts'
import { messageOf, type HostLog } from './log.ts'
import { Pipeline } from './pipeline.ts'
import { hostRequest } from './protocol.ts'
import { launchInPty } from './pty.ts'
import { wholeValues } from './redaction.ts'

/**
 * Runs the path from a start to the first rows once, with a program that does nothing, while nobody waits: code that ran
 * before is several times faster. Nothing of it is kept.
 */
export async function warmUp(world: World, log: HostLog): Promise<void> {
  try {
    hostRequest.safeParse({ type: 'start', token: 'none', apiUrl: 'none', secrets: {} })
    const secrets = [{ name: 'NONE', value: world.id('warm_') }]
    const pipeline = new Pipeline({
      session: commandSession(),
      redactor: new Redactor(secrets),
      redact: wholeValues(secrets),
      io: 'pty',
      decide: () => ({ decision: 'deny', rule: null }),
      emit: (bodies) => {
        const events = bodies.map((body) => pendingEvent(world.now(), body))
        toRows(nothingWritten(), events)
      },
      write: () => {},
      closeInput: () => {},
      onFinished: () => {},
    })
    const child = launchInPty({
      file: '/bin/sh',
      args: ['-c', 'echo warm'],
      env: { PATH: '/usr/bin:/bin' },
      cwd: '/',
      onOutput: (chunk) => pipeline.output(chunk),
      onStderr: () => {},
    })
    const exit = await child.closed
    pipeline.end({ ...exit, stoppedFor: null })
  } catch (error) {
    // A run will tell better what is wrong here.
    log('warm_up_failed', { error: messageOf(error) })
  }
}
