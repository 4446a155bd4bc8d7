import { join } from 'node:path'
import type { Box } from './box.ts'

interface TypedLine {
  status: number | null
  stdout: string
  stderr: string
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/**
 * A terminal of an account of a box: what lines leave there (the folder, exported variables, aliases) is there for the next one. Each is typed
 * in a login, as systemd knows it, and not by `su` or `sudo`. `root` is signed in without one.
 */
export function terminalOf(box: Box, account: string): (line: string) => TypedLine {
  const program = box.give(join(import.meta.dirname, 'box-login.sh'))
  const state = `/var/tmp/terminal-of-${account}`
  const login =
    account === 'root'
      ? 'cd /root; exec'
      : `exec systemd-run --quiet --pipe --wait --collect -p PAMName=login -p User=${account} -p WorkingDirectory=~ -E LANG=C.UTF-8`
  return (line) => box.try(`${login} bash -l ${program} ${quoted(line)} ${state} </dev/null`)
}
