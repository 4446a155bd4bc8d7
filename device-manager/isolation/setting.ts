import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { isolationChoices, type IsolationChoice } from '../../shared/device/isolation.ts'
import { writePrivately } from '../setup/identity-file.ts'
import type { Marks } from '../wall/hidden.ts'

const settings = z
  .object({
    /** The choice of the device's owner, or what worked when it was first tried; null: neither. */
    isolation: z.enum(isolationChoices).nullable().default(null),
    /** The folders that are hidden (`marksOf`). */
    folders: z.record(z.string(), z.string()).default({}),
  })
  .loose()

export interface IsolationSettings {
  isolation: IsolationChoice | null
  folders: Marks
}

/** A file that cannot be read means `svc`: a device never loses its wall by an accident to a file. */
export function readIsolationSettings(file: string): IsolationSettings {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    return { isolation: (error as NodeJS.ErrnoException).code === 'ENOENT' ? null : 'svc', folders: {} }
  }
  try {
    return settings.parse(JSON.parse(text))
  } catch {
    return { isolation: 'svc', folders: {} }
  }
}

export function writeSettings(file: string, { isolation, folders }: IsolationSettings): void {
  writePrivately(file, `${JSON.stringify({ isolation, folders })}\n`)
}
