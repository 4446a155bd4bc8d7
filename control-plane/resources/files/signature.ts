import { idFrom, type FileId } from '../../../shared/lib/ids.ts'
import { createHmac, timingSafeEqual } from 'node:crypto'
import { fileUrlSeconds } from '../../../shared/api/file-fields.ts'

// URLs that give one version of a file to whoever has them, for a while.

/** Below the address of the server, beside the API. */
export const filesPath = '/files'

export interface SignedFile {
  fileId: FileId
  revisionId: string
  /** Milliseconds UTC. */
  expiresAt: number
}

export class FileUrls {
  private readonly key: Uint8Array

  constructor(key: Uint8Array) {
    this.key = key
  }

  urlOf(base: string, file: Omit<SignedFile, 'expiresAt'>, now: number): { url: string; expiresAt: number } {
    // Whole seconds stand in the URL.
    const expiresAt = Math.floor(now / 1_000) * 1_000 + fileUrlSeconds * 1_000
    const query = new URLSearchParams({
      expires: String(expiresAt / 1_000),
      signature: this.signatureOf({ ...file, expiresAt }).toString('base64url'),
    })
    return { url: `${base}${filesPath}/${file.fileId}/${file.revisionId}?${query.toString()}`, expiresAt }
  }

  /** Returns what a URL names; null: it is none of ours, or late. */
  read({ path, search, now }: { path: string; search: string; now: number }): SignedFile | null {
    const [fileId = '', revisionId = '', ...others] = path.slice(filesPath.length + 1).split('/')
    const query = new URLSearchParams(search)
    const expires = query.get('expires') ?? ''
    if (others.length > 0 || !/^\d{1,12}$/.test(expires)) return null
    const signed = { fileId: idFrom<FileId>(fileId), revisionId, expiresAt: Number(expires) * 1_000 }
    const given = Buffer.from(query.get('signature') ?? '', 'base64url')
    const right = this.signatureOf(signed)
    const isOurs = given.length === right.length && timingSafeEqual(given, right)
    return isOurs && now < signed.expiresAt ? signed : null
  }

  private signatureOf({ fileId, revisionId, expiresAt }: SignedFile): Buffer {
    return createHmac('sha256', this.key).update(`file\n${fileId}\n${revisionId}\n${expiresAt}`).digest()
  }
}
