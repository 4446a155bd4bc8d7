import { secretFields } from '../../../../shared/api/secrets.ts'

/**
 * The variable of a secret that was stored without one: `deploy key` becomes `DEPLOY_KEY`, `path` becomes
 * `SECRET_PATH`.
 */
export function envVarNameFor(name: string): string {
  const words = name
    .normalize('NFKD')
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
    .slice(0, 90)
  return secretFields.envVarName.safeParse(words).success ? words : `SECRET_${words === '' ? 'VALUE' : words}`
}
