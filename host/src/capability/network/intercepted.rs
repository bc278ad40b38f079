//! Requests that somebody stands in between: their bodies are read as a whole.

use bytes::Bytes;
use futures::future::{Either, select};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use tenon_types::{Error, ErrorCode};
use wasmtime_wasi_http::{Error as HttpError, WasiBody};

use super::client::{CheckedRequest, Driver, Network, RefusalMessages, SendError, Timeouts};
use crate::capability::services::HostCallInterceptor;

impl Network {
    /// Has an interceptor see a request that was checked, and its response.
    pub(super) async fn intercepted(
        &self,
        interceptor: &Arc<dyn HostCallInterceptor>,
        request: Request<WasiBody>,
        target: &CheckedRequest,
        timeouts: Timeouts,
    ) -> Result<(Response<WasiBody>, Driver), SendError> {
        let (parts, body) = request.into_parts();
        let body = self.collect(body).await?;
        let seen = Request::from_parts(parts.clone(), body.to_vec());
        let failed = Mutex::new(None);
        let call = async {
            let request = Request::from_parts(parts, whole(body));
            self.fetch(request, target, timeouts).await.map_err(|error| {
                let said = match &error {
                    SendError::Refused(RefusalMessages { said, .. }) => Error::denied(said),
                    SendError::Failed(error) => Error::failed(error.to_string()),
                };
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                said
            })
        };
        let answered = interceptor.fetch(&seen, Box::pin(call)).await;
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        let response = answered.map_err(|error| {
            failed.unwrap_or_else(|| {
                let Error { code, message: said, .. } = error;
                match code {
                    ErrorCode::Denied => {
                        SendError::Refused(RefusalMessages { logged: said.clone(), said })
                    }
                    _ => SendError::Failed(HttpError::InternalError(Some(said))),
                }
            })
        })?;
        let (parts, body) = response.into_parts();
        Ok((Response::from_parts(parts, whole(body.into())), Box::pin(std::future::ready(()))))
    }

    async fn fetch(
        &self,
        request: Request<WasiBody>,
        target: &CheckedRequest,
        timeouts: Timeouts,
    ) -> Result<Response<Vec<u8>>, SendError> {
        let (response, driver) = self.answer(request, target, timeouts).await?;
        let (parts, body) = response.into_parts();
        let body = match select(pin!(body.collect()), driver).await {
            Either::Left((body, _)) => body,
            Either::Right(((), body)) => body.await,
        };
        Ok(Response::from_parts(parts, body?.to_bytes().to_vec()))
    }
}

fn whole(body: Bytes) -> WasiBody {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}
