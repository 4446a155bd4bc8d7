import { existsSync } from 'node:fs'
import { serviceFileOf } from '../../shared/device/service-file.ts'

export function isServiceInstalled(options: { homeDir: string; platform: string }): boolean | null {
  const path = serviceFileOf(options)
  return path === null ? null : existsSync(path)
}
