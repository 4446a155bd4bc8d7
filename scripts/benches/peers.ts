import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** The bare programs that ours are compared with, each in a process of its own (see peer-main.ts). */
export interface Peer {
  port: number
  cpuMs(): Promise<number>
  end(): Promise<void>
}

export async function startPeer(kind: 'echo' | 'relay' | 'koa', argument = ''): Promise<Peer> {
  const child = fork(join(import.meta.dirname, 'peer-main.ts'), [kind, argument], {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return {
    port,
    async cpuMs() {
      return (await answer(child, 'cpu')).cpuMs
    },
    async end() {
      const gone = once(child, 'exit')
      child.kill()
      await gone
    },
  }
}

async function answer(child: ChildProcess, question: string): Promise<{ cpuMs: number }> {
  const answered = once(child, 'message')
  child.send(question)
  return (await answered)[0] as { cpuMs: number }
}
