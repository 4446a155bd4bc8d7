import { Worker } from 'node:worker_threads'

export interface Request {
  url: string
  method: string
  headers: Record<string, string>
  body?: string
}

/** Asks a server of this process from another thread. */
export class Asker {
  private readonly worker = new Worker(new URL('asker.mjs', import.meta.url))
  private last = 0

  /** Resolves with the statuses. */
  ask(requests: readonly Request[]): Promise<number[]> {
    const id = ++this.last
    return new Promise((resolve, reject) => {
      const answered = (message: { id: number; statuses?: number[]; error?: string }) => {
        if (message.id !== id) return
        this.worker.off('message', answered)
        if (message.statuses === undefined) reject(new Error(message.error))
        else resolve(message.statuses)
      }
      this.worker.on('message', answered)
      this.worker.postMessage({ id, requests })
    })
  }

  async end(): Promise<void> {
    await this.worker.terminate()
  }
}
