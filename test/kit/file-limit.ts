import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'

/** null: the number of files of a program can be limited here while it runs. */
export function whyNoFileLimit(): string | null {
  if (process.platform !== 'linux') return 'files of a running program can be limited on Linux only'
  try {
    execFileSync('prlimit', ['--version'], { stdio: 'ignore' })
    return null
  } catch {
    return 'prlimit is not installed'
  }
}

/** From now on the program gets no file: its limit is the lowest number that is free. Answers what undoes it. */
export function takeFiles(pid: number): () => void {
  const before = execFileSync('prlimit', [`--pid=${pid}`, '--nofile', '--raw', '--noheadings', '--output=SOFT,HARD'])
  const [soft, hard] = before.toString().trim().split(/\s+/)
  const open = new Set(readdirSync(`/proc/${pid}/fd`).map(Number))
  let lowest = 0
  while (open.has(lowest)) lowest++
  execFileSync('prlimit', [`--pid=${pid}`, `--nofile=${lowest}:${hard}`])
  return () => void execFileSync('prlimit', [`--pid=${pid}`, `--nofile=${soft}:${hard}`])
}
