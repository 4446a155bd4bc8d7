import { readFileSync } from 'node:fs'
import { EngineClient, type EngineCall } from '../engine-client.ts'
import { EngineError } from '../engine.ts'

/** The place of the API of a cluster, and the files with which it is asked. */
export interface KubernetesClientOptions {
  /** `https://10.0.0.1:443`. */
  url: URL
  /** A file that the cluster writes anew now and then. */
  tokenFile: string
  /** The file of the authority that the API's certificate is checked with; null: those that Node trusts. */
  caFile: string | null
  timeoutMs: number
}

/** Asks the API of a cluster. */
export class KubernetesClient extends EngineClient {
  constructor({ url, tokenFile, caFile, timeoutMs }: KubernetesClientOptions) {
    super({
      name: url.host,
      timeoutMs,
      connection: () => ({
        isEncrypted: url.protocol === 'https:',
        hostname: url.hostname.replace(/^\[|\]$/g, ''),
        port: url.port,
        headers: { accept: 'application/json', authorization: `Bearer ${fileOf(tokenFile)}` },
        ...(caFile !== null && { ca: fileOf(caFile) }),
      }),
    })
  }

  /**
   * A refusal is not final, either, where a token just ended, whose file has the next one soon, or a quota has no room now: the time that
   * a sandbox has in its state limits how often these are asked again.
   */
  protected override isFinal(status: number, words: string): boolean {
    if (status === 401 || status === 408 || status === 409 || status === 410 || status === 429) return false
    if (status === 403 && /exceeded quota/.test(words)) return false
    return super.isFinal(status, words)
  }

  /** Makes it, or finds it made. */
  async make(path: string, manifest: object): Promise<'made' | 'there'> {
    const call: EngineCall = { method: 'POST', path, body: manifest }
    const reply = await this.call(call)
    if (reply.status === 409 && isTaken(reply.body)) return 'there'
    if (reply.status === 200 || reply.status === 201 || reply.status === 202) return 'made'
    throw this.refusal(call, reply)
  }
}

/** A 409 also says that it cannot be made while one of its name is being removed. */
const isTaken = (body: Buffer): boolean =>
  /"reason"\s*:\s*"AlreadyExists"/.test(body.toString('utf8')) && !/object is being deleted/.test(body.toString('utf8'))

function fileOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new EngineError(`${path}, by which the cluster is asked, cannot be read (${(error as Error).message}).`)
  }
}
