import { watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { CommandContext, Flow } from '../../context/context.ts'
import { CliError, usageError } from '../../errors/cli-error.ts'
import { addedTo, tailOf } from '../../device/log-lines.ts'
import { devicePlaces } from '../../machine/paths.ts'

/** The delay after which a change that the watcher missed (network file systems) is seen. */
const lookEveryMs = 1_000

/**
 * `device logs`: prints the last lines of the daemon's log, and with --follow new lines, even when the log is rotated.
 */
export const deviceLogs: Flow = async (context) => {
  const { env, out, values } = context
  const count = Number(values.local['lines'])
  if (!Number.isInteger(count) || count < 0 || count > 1_000_000) throw usageError('--lines takes a whole number.')
  const places = await devicePlaces(env)
  const tail = tailOf(places.daemonLog, count)
  if (tail === null) {
    throw new CliError('no_log', `There is no log at ${places.daemonLog}: the device manager has not run here.`, {
      remediation: 'Type `svc device connect` to start it.',
    })
  }
  for (const line of tail.lines) out.text(line)
  if (values.local['follow'] === true) await follow(context, places.daemonLog, tail.end)
}

async function follow({ out, world }: CommandContext, path: string, from: number): Promise<void> {
  let end = from
  let rest = Buffer.alloc(0)
  const look = () => {
    const added = addedTo(path, end)
    end = added.end
    rest = Buffer.concat([rest, added.text])
    const cut = rest.lastIndexOf(10) + 1
    if (cut === 0) return
    out.text(rest.subarray(0, cut).toString('utf8'))
    rest = rest.subarray(cut)
  }
  const watcher = watch(dirname(path), (_, name) => {
    if (name === null || name === basename(path)) look()
  })
  try {
    for (;;) {
      look()
      await world.sleep(lookEveryMs)
    }
  } finally {
    watcher.close()
  }
}
