// What the server said went wrong, in the shape that every refusal has.
export interface Issue {
  path: string;
  message: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly remedy: string,
    readonly issues: Issue[],
  ) {
    super(message);
    this.name = "ApiError";
  }
}

export function isLost(error: unknown): boolean {
  return error instanceof ApiError && error.code === "server_lost";
}

export function lost(): ApiError {
  return new ApiError(0, "server_lost", "The server does not answer.", "The page tries again by itself.", []);
}

interface Refusal {
  error?: unknown;
  code?: unknown;
  remedy?: unknown;
  details?: { issues?: unknown };
}

const text = (value: unknown, otherwise: string) => (typeof value === "string" ? value : otherwise);

export async function refusal(response: Response): Promise<ApiError> {
  let said: Refusal = {};
  try {
    said = (await response.json()) as Refusal;
  } catch {
    // Something between us and the server has answered in its place.
  }
  const issues = Array.isArray(said.details?.issues) ? (said.details.issues as Issue[]) : [];
  return new ApiError(
    response.status,
    text(said.code, `http_${response.status}`),
    text(said.error, `The server answered with status ${response.status}.`),
    text(said.remedy, ""),
    issues,
  );
}
