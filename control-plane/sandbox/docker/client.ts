import type { IncomingMessage } from 'node:http'
import { EngineError } from '../engine.ts'
import { EngineClient, type EngineCall } from '../engine-client.ts'

/** The place where the engine listens: the path of a unix socket. */
export interface DockerClientOptions {
  socket: string
  /** A call that takes longer is given up. */
  timeoutMs: number
}

/** The newest version of the API that this client was written for: 1.41. */
const newestMinor = 41

/** Asks a Docker engine, or what speaks its API as Podman does, over its socket. */
export class DockerClient extends EngineClient {
  private version: string | null = null

  constructor({ socket, timeoutMs }: DockerClientOptions) {
    super({ name: socket, timeoutMs, connection: () => ({ socketPath: socket, headers: { host: 'engine' } }) })
  }

  protected override async open(call: EngineCall, signal: AbortSignal): Promise<IncomingMessage> {
    const version = await this.versioned(call, signal)
    return super.open({ ...call, path: `/${version}${call.path}` }, signal)
  }

  /** The lower one of the engine's version and ours: old engines know no new ones, and new ones refuse old ones. */
  private async versioned(call: EngineCall, signal: AbortSignal): Promise<string> {
    if (this.version !== null) return this.version
    const answer = await super.open({ method: 'GET', path: '/version' }, signal)
    let text = ''
    for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>)
      if (text.length < versionBytes) text += chunk
    const said = answer.statusCode === 200 ? /"ApiVersion"\s*:\s*"1\.(\d{1,3})"/.exec(text) : null
    if (said === null) throw new EngineError(`${this.options.name} does not answer as a Docker engine does.`)
    return (this.version = `v1.${Math.min(Number(said[1]), newestMinor)}`)
  }
}

const versionBytes = 64 * 1024
