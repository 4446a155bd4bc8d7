import { Worker } from 'node:worker_threads'

export interface Request {
  url: string
  method: string
  headers: Record<string, string>
  body?: string
}

export interface Answer {
  status: number
  bytes: number
}

/** Asks a server of this process from another thread. */
export class Asker {
  private readonly worker = new Worker(new URL('asker.mjs', import.meta.url))
  private last = 0

  ask(requests: readonly Request[]): Promise<Answer[]> {
    const id = ++this.last
    return new Promise((resolve, reject) => {
      const answered = (message: { id: number; answers?: Answer[]; error?: string }) => {
        if (message.id !== id) return
        this.worker.off('message', answered)
        if (message.answers === undefined) reject(new Error(message.error))
        else resolve(message.answers)
      }
      this.worker.on('message', answered)
      // A thread has no origin.
      // oxlint-disable-next-line unicorn/require-post-message-target-origin
      this.worker.postMessage({ id, requests })
    })
  }

  async end(): Promise<void> {
    await this.worker.terminate()
  }
}
